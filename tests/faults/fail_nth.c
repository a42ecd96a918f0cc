/* Lets one write, sync, rename or truncation in a directory fail: cc -shared -fPIC, LD_PRELOAD. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static char directory[4096];
static long remaining = 0; /* 0: nothing fails; else the n-th call from now on */
static long calls = 0;

void fail_nth(const char *where, long n) {
    strncpy(directory, where, sizeof directory - 1);
    remaining = n;
    calls = 0;
}
long calls_made(void) { return calls; }

static int fails_path(const char *path) {
    if (!remaining || strncmp(path, directory, strlen(directory)) != 0) return 0;
    long now = __sync_add_and_fetch(&calls, 1);
    return now == remaining;
}
static int fails(int fd) {
    char link[64], path[4096];
    if (!remaining) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t size = readlink(link, path, sizeof path - 1);
    if (size < 0) return 0;
    path[size] = 0;
    return fails_path(path);
}
#define REAL(type, name, ...) static type (*real)(__VA_ARGS__); \
    if (!real) real = (type (*)(__VA_ARGS__))dlsym(RTLD_NEXT, name)

ssize_t write(int fd, const void *b, size_t n) {
    REAL(ssize_t, "write", int, const void *, size_t);
    if (fails(fd)) { errno = ENOSPC; return -1; }
    return real(fd, b, n);
}
ssize_t writev(int fd, const struct iovec *v, int n) {
    REAL(ssize_t, "writev", int, const struct iovec *, int);
    if (fails(fd)) { errno = ENOSPC; return -1; }
    return real(fd, v, n);
}
ssize_t pwrite(int fd, const void *b, size_t n, off_t o) {
    REAL(ssize_t, "pwrite", int, const void *, size_t, off_t);
    if (fails(fd)) { errno = ENOSPC; return -1; }
    return real(fd, b, n, o);
}
ssize_t pwrite64(int fd, const void *b, size_t n, off64_t o) {
    REAL(ssize_t, "pwrite64", int, const void *, size_t, off64_t);
    if (fails(fd)) { errno = ENOSPC; return -1; }
    return real(fd, b, n, o);
}
int fsync(int fd) {
    REAL(int, "fsync", int);
    if (fails(fd)) { errno = EIO; return -1; }
    return real(fd);
}
int fdatasync(int fd) {
    REAL(int, "fdatasync", int);
    if (fails(fd)) { errno = EIO; return -1; }
    return real(fd);
}
int ftruncate64(int fd, off64_t n) {
    REAL(int, "ftruncate64", int, off64_t);
    if (fails(fd)) { errno = EIO; return -1; }
    return real(fd, n);
}
int rename(const char *a, const char *b) {
    REAL(int, "rename", const char *, const char *);
    if (fails_path(b)) { errno = EIO; return -1; }
    return real(a, b);
}
int renameat2(int x, const char *a, int y, const char *b, unsigned f) {
    REAL(int, "renameat2", int, const char *, int, const char *, unsigned);
    if (fails_path(b)) { errno = EIO; return -1; }
    return real(x, a, y, b, f);
}

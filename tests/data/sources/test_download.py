import errno
import hashlib
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from ltocf.data.sources import catalog, download, published
from ltocf.data.sources.catalog import find_published, load_dataset
from ltocf.errors import DataError

BODY = b"0 1 2\n1 0\n" * 5000
MD5 = hashlib.md5(BODY).hexdigest()
Answer = Callable[[BaseHTTPRequestHandler], None]


def whole(request: BaseHTTPRequestHandler) -> None:
    send(request, BODY, len(BODY))


def truncated(request: BaseHTTPRequestHandler) -> None:
    send(request, BODY[:1000], len(BODY))


def altered(request: BaseHTTPRequestHandler) -> None:
    send(request, BODY[::-1], len(BODY))


def missing(request: BaseHTTPRequestHandler) -> None:
    request.send_error(404)


def busy(request: BaseHTTPRequestHandler) -> None:
    request.send_error(503)


def send(request: BaseHTTPRequestHandler, body: bytes, length: int) -> None:
    request.send_response(200)
    request.send_header("Content-Length", str(length))
    request.end_headers()
    request.wfile.write(body)


class Mirror:
    """A web server of this machine that gives the listed answers, the last one for ever."""

    def __init__(self) -> None:
        self.url = ""
        self.answers: list[Answer] = [whole]
        self.paths: list[str] = []

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        turn = min(len(self.paths), len(self.answers) - 1)
        self.paths.append(request.path)
        self.answers[turn](request)


@pytest.fixture
def mirror(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Mirror]:
    mirror = Mirror()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            mirror.answer(self)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    mirror.url = f"http://127.0.0.1:{server.server_port}"
    monkeypatch.setattr("ltocf.data.sources.download.time.sleep", lambda _: None)
    monkeypatch.setenv("LTOCF_MIRROR", mirror.url)
    monkeypatch.setattr(catalog, "cache_root", lambda: tmp_path / "cache/ltocf")
    monkeypatch.delenv("LTOCF_DATA", raising=False)
    small = published.PublishedSet((MD5, MD5), users=2, items=3, train=3, test=3)
    monkeypatch.setitem(published.PUBLISHED, "gowalla", small)
    yield mirror
    server.shutdown()
    server.server_close()
    thread.join()


def files_under(path: Path) -> list[str]:
    return sorted(file.name for file in path.rglob("*") if file.is_file())


def test_the_cache_is_where_the_system_keeps_caches(monkeypatch, tmp_path):
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    usual = catalog.cache_root()  # type: ignore[attr-defined]
    assert usual.is_absolute()
    assert "ltocf" in usual.parts
    if sys.platform == "linux":
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
        assert catalog.cache_root() == tmp_path / "ltocf"  # type: ignore[attr-defined]


def test_a_published_set_is_downloaded_once_and_then_found_in_the_cache(mirror, tmp_path):
    assert (
        find_published("gowalla") == find_published("gowalla") == tmp_path / "cache/ltocf/gowalla"
    )
    assert mirror.paths == ["/gowalla/train.txt", "/gowalla/test.txt"]
    assert files_under(tmp_path / "cache") == ["test.txt", "train.txt"]


@pytest.mark.parametrize("trouble", [truncated, altered, busy])
def test_trouble_that_passes_is_tried_again(mirror, tmp_path, trouble):
    mirror.answers = [trouble, trouble, whole]
    find_published("gowalla")
    assert len(mirror.paths) == 4
    assert (tmp_path / "cache/ltocf/gowalla/train.txt").read_bytes() == BODY


@pytest.mark.parametrize(
    ("trouble", "message", "attempts"),
    [
        (truncated, r"ended after 1,000 of 50,000 bytes \(tried 4 times\)", 4),
        (altered, r"the md5 sum is .*, not .* \(tried 4 times\)", 4),
        (busy, r"answered 503 .* \(tried 4 times\)", 4),
        (missing, "the server answered 404", 1),
    ],
)
def test_trouble_that_stays_is_one_clear_error_and_leaves_no_file(
    mirror, tmp_path, trouble, message, attempts
):
    mirror.answers = [trouble]
    with pytest.raises(DataError, match=message):
        find_published("gowalla")
    assert len(mirror.paths) == attempts
    assert files_under(tmp_path / "cache") == []


def test_a_server_that_is_not_there_is_one_clear_error(mirror, monkeypatch, tmp_path):
    monkeypatch.setenv("LTOCF_MIRROR", "http://127.0.0.1:1")
    with pytest.raises(DataError, match=r"127\.0\.0\.1:1/gowalla/train\.txt: cannot be reached"):
        find_published("gowalla")
    assert files_under(tmp_path) == []


def test_a_full_disk_is_one_clear_error_and_leaves_no_file(mirror, monkeypatch, tmp_path):
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(download, "_copy", full)
    with pytest.raises(DataError, match=r"train\.txt: cannot be written \(No space left"):
        find_published("gowalla")
    assert files_under(tmp_path) == []


def test_a_local_copy_is_preferred_and_must_be_the_published_one(mirror, monkeypatch, tmp_path):
    local = tmp_path / "mine" / "gowalla"
    local.mkdir(parents=True)
    (local / "train.txt").write_bytes(BODY)
    (local / "test.txt").write_bytes(BODY)
    monkeypatch.setenv("LTOCF_DATA", str(tmp_path / "mine"))
    assert find_published("gowalla") == local
    assert mirror.paths == []
    (local / "test.txt").write_bytes(BODY[:-1])
    with pytest.raises(DataError, match=r"test\.txt: not the published 'gowalla'"):
        load_dataset("gowalla")

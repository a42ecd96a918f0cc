"""One file from the web: with progress, retries and a checksum, and never half-written."""

from __future__ import annotations

import hashlib
import http.client
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn

from ltocf.errors import DataError
from ltocf.storage.files import replacing

ATTEMPTS = 4
CHUNK = 1 << 16
TIMEOUT_SECONDS = 30
WORTH_RETRYING = {408, 425, 429, 500, 502, 503, 504}


def download(url: str, path: Path, *, md5: str, pause_seconds: float = 1.0) -> None:
    """Fetch `url` to `path`. After a transient failure it tries again, each time after a longer
    pause."""
    for attempt in range(ATTEMPTS):
        try:
            _fetch(url, path, md5)
            return
        except _TransientFailure as problem:
            if attempt == ATTEMPTS - 1:
                raise DataError(
                    f"{url}: {problem} (tried {ATTEMPTS} times); try later, or put the file "
                    "into a folder named by LTOCF_DATA"
                ) from None
            time.sleep(pause_seconds * 2**attempt)


class _TransientFailure(Exception):
    """A failure that may not occur again."""


def _fetch(url: str, path: Path, md5: str) -> None:
    with replacing(path) as temporary, temporary.open("wb") as file, _network(url):
        _copy(url, file.write, path.name, md5)


@contextmanager
def _network(url: str) -> Iterator[None]:
    """Distinguish failures of the network from those of the disk."""
    try:
        yield
    except urllib.error.HTTPError as error:
        error.close()
        if error.code not in WORTH_RETRYING:
            raise DataError(f"{url}: the server answered {error.code} {error.reason}") from None
        raise _TransientFailure(f"the server answered {error.code} {error.reason}") from None
    except (urllib.error.URLError, http.client.HTTPException, TimeoutError) as error:
        raise _TransientFailure(f"cannot be reached ({getattr(error, 'reason', error)})") from None
    except ConnectionError as error:
        raise _TransientFailure(f"the connection broke ({error.strerror or error})") from None


def _copy(url: str, write: Callable[[bytes], object], label: str, md5: str) -> None:
    """Copy the body chunk by chunk; an incomplete or altered one is a transient failure."""
    digest, received = hashlib.md5(usedforsecurity=False), 0
    # The address is from the catalog or from LTOCF_MIRROR, which may be a file: URL of the user.
    answer = urllib.request.urlopen(url, timeout=TIMEOUT_SECONDS)  # noqa: S310
    with _progress() as progress, answer:
        expected = int(answer.headers.get("Content-Length") or 0)
        task = progress.add_task(label, total=expected or None)
        while chunk := answer.read(CHUNK):
            write(chunk)
            digest.update(chunk)
            received += len(chunk)
            progress.update(task, completed=received)
    if expected and received < expected:
        raise _TransientFailure(f"the body ended after {received:,} of {expected:,} bytes")
    if digest.hexdigest() != md5:
        raise _TransientFailure(f"the md5 sum is {digest.hexdigest()}, not {md5}")


def _progress() -> Progress:
    console = Console(stderr=True)
    columns = "[progress.description]{task.description}", BarColumn(), DownloadColumn()
    return Progress(
        *columns,
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )

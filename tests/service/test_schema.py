"""schemathesis over the OpenAPI schema: no 5xx, and every answer is what the schema says."""

import re
import subprocess
import sys
import threading
import time
from pathlib import Path

import polars as pl
import pytest
import uvicorn

from ltocf.recommend.recommender import Recommender
from ltocf.service.app import create_app
from ltocf.service.served_model import ServedModel

PROGRAM = Path(sys.executable).with_name("schemathesis")
pytestmark = pytest.mark.skipif(not PROGRAM.exists(), reason="needs schemathesis")
# As many items and users as a list may be long.
ITEMS, USERS = ([f"{kind} {n}" for n in range(1000)] for kind in ("item", "user"))
LOG = {
    "user": ["ann", "ann", "bob", "bob", "cem", "cem", *USERS],
    "item": ["tea", "jazz", "tea", "chess", "jazz", "chess", *ITEMS],
}


@pytest.fixture
def url(store):
    """Of a real server, whose users and items are those of the schema's examples."""
    served = ServedModel(Recommender("ease").fit(pl.DataFrame(LOG)))
    server = uvicorn.Server(uvicorn.Config(create_app(served, store), port=0, log_level="warning"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.02)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/openapi.json"
    server.should_exit = True
    thread.join()


def test_no_request_gets_what_the_schema_does_not_say(url, request, tmp_path):
    """Examples, every boundary, random requests good and bad, and chains of them: few in `make
    quick`, and four times as many where slow tests run too."""
    quick = "not slow" in request.config.option.markexpr
    examples, least = (5, 200) if quick else (20, 500)
    options = ["--max-examples", str(examples), "--generation-deterministic", "--no-color"]
    done = subprocess.run(
        [PROGRAM, "run", url, *options], cwd=tmp_path, capture_output=True, text=True, timeout=900
    )
    assert done.returncode == 0, done.stdout[-6000:]
    (cases,) = re.findall(r"([\d,]+) generated", done.stdout)
    assert int(cases.replace(",", "")) >= least

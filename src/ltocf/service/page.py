"""The files of the page, served with a digest so that a browser fetches each only once."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from importlib.resources import files
from typing import Any

from fastapi import FastAPI, Request, Response

STATIC = "/static/"
KINDS = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}


def add_page(app: FastAPI) -> None:
    """index.html at the root, and what it loads beside it."""
    for file in sorted(files("ltocf.service").joinpath("static").iterdir(), key=lambda f: f.name):
        suffix = file.name[file.name.rindex(".") :]
        path = "/" if file.name == "index.html" else STATIC + file.name
        send = _sender(file.read_bytes(), f"{KINDS[suffix]}; charset=utf-8")
        app.add_api_route(path, send, methods=["GET", "HEAD"], include_in_schema=False)


def _sender(content: bytes, kind: str) -> Callable[[Request], Any]:
    tag = f'"{hashlib.sha256(content).hexdigest()[:20]}"'
    headers = {"cache-control": "no-cache", "etag": tag}

    async def send(request: Request) -> Response:
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers=headers)
        return Response(content, media_type=kind, headers=headers)

    return send

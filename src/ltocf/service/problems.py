"""Requests that are refused: a status and one line for the author of the client."""

from __future__ import annotations


class Problem(Exception):
    """`detail` is one line for the author of the client."""

    status = 422

    def __init__(self, detail: str) -> None:
        super().__init__(detail)
        self.detail = detail


class Unknown(Problem):
    status = 404


class Conflict(Problem):
    status = 409


class Busy(Problem):
    status = 503

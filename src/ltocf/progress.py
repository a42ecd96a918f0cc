"""How far a long piece of work has come, told to whoever watches."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Called now and then with the stage, how much of it is done, and how much there is.

    `note` is what else is worth showing, such as a loss. A whole `done` ends a round: an epoch, a
    trial. Where nobody knows how much there is, `total` is none.
    """

    def __call__(
        self, stage: str, done: float, total: float | None = None, note: str = ""
    ) -> None: ...


def silent(stage: str, done: float, total: float | None = None, note: str = "") -> None:
    pass

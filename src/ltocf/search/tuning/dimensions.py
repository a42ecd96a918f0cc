"""What a setting may be in a search: key=low:high or key=a|b|c.

The first is a number in between: on a logarithmic scale if the range spans a factor of 20, and
whole if both ends are whole. The second is one of these values.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ltocf.errors import ConfigError

if TYPE_CHECKING:
    import optuna


@dataclass(frozen=True)
class SearchDimension:
    """What one setting may be: one of `options`, or a number from `low` to `high`."""

    key: str
    options: tuple[Any, ...] = ()
    low: float = 0
    high: float = 0

    @classmethod
    def parse(cls, text: str) -> SearchDimension:
        key, equals, values = text.partition("=")
        if equals and "|" in values:
            return cls(key, tuple(_number(value) for value in values.split("|")))
        low, colon, high = values.partition(":")
        bounds = _number(low), _number(high)
        if (
            not key
            or not colon
            or any(isinstance(b, str) for b in bounds)
            or bounds[0] >= bounds[1]
        ):
            raise ConfigError(
                f"cannot read {text!r}: expected key=low:high or key=a|b|c, "
                "such as learning_rate=0.001:0.03 or layers=2|3|4"
            )
        return cls(key, (), *bounds)

    def suggest(self, trial: optuna.Trial) -> Any:
        if self.options:
            return trial.suggest_categorical(self.key, self.options)
        wide = self.low > 0 and self.high / self.low >= 20
        if isinstance(self.low, int) and isinstance(self.high, int):
            return trial.suggest_int(self.key, self.low, self.high, log=wide)
        return trial.suggest_float(self.key, self.low, self.high, log=wide)


def _number(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return {"true": True, "false": False}.get(text, text)

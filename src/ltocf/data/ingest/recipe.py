"""What `prepare` does with a log: how it is read, what is left out, how it is split."""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

from ltocf.data.ingest.cells.kinds import parse_kinds
from ltocf.data.ingest.cells.moments import check_time_format
from ltocf.data.ingest.text_form import TextOptions
from ltocf.data.pairs.cuts import SPLIT_KINDS, SplitKind, check_fraction
from ltocf.data.pairs.store import Repeats
from ltocf.data.pairs.thinning import Unknown
from ltocf.errors import ConfigError


@dataclass(frozen=True)
class Reading:
    """How a log is read: its columns by name, number (from 1) or guess, and its form."""

    user: str | None = None
    item: str | None = None
    time: str | None = None
    rating: str | None = None
    weight: str | None = None  # how strong an interaction is: plays, a quantity, a rating
    repeats: Repeats | None = None  # how the weights of a repeated pair become one; none: sum
    threshold: float | None = None  # a lower rating, or none, is not a like
    kind: str | None = None  # column of the kind of event, whose weight is in `weigh`
    weigh: str | dict[str, float | str] | None = None  # view=1,purchase=5,return=-5,dislike=hide
    time_format: str | None = None  # such as %d.%m.%Y, day-first, month-first or milliseconds
    separator: str | None = None
    header: bool | None = None
    encoding: str | None = None
    skip_bad: bool = False  # skip rows that cannot be read, instead of failing

    @property
    def weighted(self) -> bool:
        """Repeats without a column of weights: each row weighs 1."""
        return any(given is not None for given in (self.weight, self.repeats, self.weigh))

    def check(self) -> None:
        self.text_options().check()
        if self.repeats not in (None, *get_args(Repeats)):
            choices = ", ".join(get_args(Repeats))
            raise ConfigError(f"unknown repeats {self.repeats!r}; choose one of: {choices}")
        if self.repeats == "max" and self.weight is None and self.weigh is None:
            raise ConfigError(
                "repeats 'max' needs a column of weights; name it with weight= (--weight)"
            )
        if self.kind is not None and self.weigh is None:
            raise ConfigError(
                f"kind {self.kind!r} needs the weight of each kind: weigh= (--weigh view=1,cart=3)"
            )
        if self.weigh is not None:
            parse_kinds(self.weigh)
        if self.time_format is not None:
            check_time_format(self.time_format)

    def text_options(self) -> TextOptions:
        return TextOptions(self.separator, self.header, self.encoding)


@dataclass(frozen=True)
class Recipe(Reading):
    """What is done to a log: how it is read, what is left out, how it is split."""

    min_user: int = 1  # interactions that each user, and each item, must have left: a k-core
    min_item: int = 1
    max_user: int | None = None  # of a user with more interactions, so many of the latest are kept
    split: SplitKind = "ratio"
    ratio: float = 0.8  # the share of train
    unknown: Unknown = "drop"  # what is done with given test pairs that train does not know
    validation: float = 0.0  # the share of train that is held out for validation
    seed: int = 0

    def check(self) -> None:
        super().check()
        for name, choices in (("split", SPLIT_KINDS), ("unknown", get_args(Unknown))):
            if (value := getattr(self, name)) not in choices:
                raise ConfigError(
                    f"{name} = {value!r} is unknown; choose one of: {', '.join(choices)}"
                )
        check_fraction("ratio", self.ratio)
        if self.validation:
            check_fraction("validation", self.validation)
        if not 0 <= self.seed < 2**63:
            raise ConfigError(f"seed = {self.seed}: must be a whole number from 0 to 2^63 - 1")
        for name, count in (
            ("min_user", self.min_user),
            ("min_item", self.min_item),
            ("max_user", self.max_user),
        ):
            if count is not None and count < 1:
                raise ConfigError(f"{name} must be at least 1, got {count!r}")

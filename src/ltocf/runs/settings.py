"""Settings as users write them: a TOML file, and `key=value` that goes where the model wants it."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ltocf.config import LOSSES, Loss, RunConfig, TrainConfig, read_toml, validated
from ltocf.errors import ConfigError
from ltocf.models import MODELS, check_settings, current_name

# What settings were called in configs and runs that were written earlier.
RENAMED = {
    "": {"init": "start_from"},
    "train": {"scheme": "draw_by", "average": "average_decay"},
    "model": {"steps": "steps_per_interval"},
}
MOVED_TO_MODEL = ("time_learning_rate", "time_updates", "time_every")  # from [train]


Overrides = Iterable[str] | Mapping[str, Any]


def make_config(
    values: Mapping[str, Any], overrides: Overrides = (), *, of_run: bool = False
) -> RunConfig:
    """Settings from a parsed TOML file and, which win, `key=value` strings or a mapping.

    Those of a run were checked when it was made; its model checks its own when it is built, so
    that a list need not wait for torch."""
    merged = _modernised(values)
    merged["model"] = {"name": "ltocf"} | merged.get("model", {})
    wanted = parse_overrides(overrides)
    for key, value in wanted.items():  # the model first: what a bare key means depends on it
        if key in ("model", "model.name"):
            _name_model(merged, str(value))
    for key, value in wanted.items():
        if key not in ("model", "model.name"):
            section, name = _place(key, str(merged["model"]["name"]))
            (merged.setdefault(section, {}) if section else merged)[name] = value
    if (name := merged["model"]["name"]) != "auto" and not of_run:
        options = {key: value for key, value in merged["model"].items() if key != "name"}
        check_settings(name, options)
    sections = {
        "loss": _loss(merged.pop("loss", {})),
        "train": validated(TrainConfig, merged.pop("train", {}), "[train]"),
    }
    return validated(RunConfig, merged | sections, "the config")


def given_settings(config: RunConfig) -> dict[str, Any]:
    """What `make_config` must be told, beside the data set, to give these settings."""
    flat: dict[str, Any] = {"model": config.model_name, "seed": config.seed}
    flat |= {f"model.{key}": value for key, value in config.model_options.items()}
    usual = RunConfig()
    for section in ("loss", "train"):
        for key, value in getattr(config, section).model_dump().items():
            if value != getattr(getattr(usual, section), key, None):
                flat[f"{section}.{key}"] = value
    return flat


def read_config(path: Path, overrides: Overrides = (), *, of_run: bool = False) -> RunConfig:
    return make_config(read_toml(path), overrides, of_run=of_run)


def _name_model(merged: dict[str, Any], name: str) -> None:
    """Another model than the file's takes none of that one's settings."""
    if merged["model"].get("name") != name:
        merged["model"] = {"name": name}


def _loss(values: Mapping[str, Any]) -> Loss:
    name = str(values.get("name", "bpr"))
    if name not in LOSSES:
        raise ConfigError(f"unknown loss {name!r}; choose one of: {', '.join(LOSSES)}")
    return validated(LOSSES[name], values, f"[loss] of {name!r}")


def parse_overrides(overrides: Overrides) -> dict[str, Any]:
    """Values by key; those of `key=value` are read as TOML, or else are the text itself."""
    if isinstance(overrides, Mapping):
        return {key: _plain(value) for key, value in overrides.items()}
    return dict(map(_parse_override, overrides))


def _plain(value: Any) -> Any:
    """As a TOML file would give it back, so that a saved config is the one that was given."""
    if isinstance(value, Mapping):
        return {key: _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [_plain(entry) for entry in value]
    if isinstance(value, np.generic):
        return value.item()
    return str(value) if isinstance(value, Path) else value


def _parse_override(text: str) -> tuple[str, Any]:
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise ConfigError(f"cannot read {text!r}: expected key=value, such as epochs=20")
    return key.strip(), _parse_value(value.strip())


def _parse_value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def means_something(key: str, model: str) -> bool:
    """Whether a model uses a setting: a closed form is not trained, and some losses are given."""
    section, name = _find(key, model)
    kind = MODELS.get(current_name(model))
    if kind is None or section not in ("loss", "train"):
        return True
    if kind.solved:
        return section == "train" and name in ("protocol", "validation", "validation_cut")
    return section == "train" or bool(kind.losses)


def _place(key: str, model: str) -> tuple[str, str]:
    """The section and the name of a key that the model uses."""
    if not means_something(key, model):
        solved = MODELS[current_name(model)].solved
        why = "it is solved in closed form, not trained" if solved else "its loss is its own"
        raise ConfigError(f"{key!r} means nothing to {model!r}: {why}")
    return _find(key, model)


def _find(key: str, model: str) -> tuple[str, str]:
    """The section and the name of `train.epochs`, or of `epochs` where the model tells which: a
    bare key that the model has is the model's."""
    section, dot, name = key.rpartition(".")
    if dot:
        return section, name
    return _section(name, model), "name" if name == "loss" else name


def _section(name: str, model: str) -> str:
    kind = MODELS.get(current_name(model))
    loss_fields = {field for loss in LOSSES.values() for field in loss.model_fields}
    if name == "loss":
        return "loss"
    if kind is not None and name in kind.Config.model_fields:
        return "model"
    if name in TrainConfig.model_fields:
        return "train"
    if name in loss_fields:
        return "loss"
    return "" if name in RunConfig.model_fields else "model"


def _modernised(values: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of the values with the present names."""
    merged = {k: dict(v) if isinstance(v, dict) else v for k, v in values.items()}
    for section, names in RENAMED.items():
        place = merged.get(section, {}) if section else merged
        for old, new in names.items():
            if old in place and not (section == "model" and place.get("name") != "ltocf"):
                place[new] = place.pop(old)
    if isinstance(train := merged.get("train"), dict):
        moved = {key: train.pop(key) for key in MOVED_TO_MODEL if key in train}
        if merged.get("model", {}).get("name", "ltocf") == "ltocf":
            if moved.get("time_learning_rate") == 0:  # which meant not to learn them
                moved = {"learn_times": False}
            merged["model"] = moved | merged.get("model", {})
    loss = merged.get("loss")
    if isinstance(loss, dict) and {"hardest", "shared"} & loss.keys():
        hardest, shared = loss.pop("hardest", True), loss.pop("shared", 0)
        loss["sampling"] = "shared" if shared else "hardest" if hardest else "uniform"
        loss["negatives"] = shared or loss.get("negatives", 32)
        kept = LOSSES.get(str(loss.get("name", "bpr")))
        for key in ("temperature", "positive_temperature"):
            if kept is not None and key not in kept.model_fields:
                loss.pop(key, None)
    return merged

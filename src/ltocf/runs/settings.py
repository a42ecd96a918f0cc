"""Settings as users write them: a TOML file, and `key=value`, sorted into the right section."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ltocf.config import LOSSES, Loss, RunConfig, TrainConfig, read_toml, validated
from ltocf.errors import ConfigError
from ltocf.models import MODELS, check_settings

Overrides = Iterable[str] | Mapping[str, Any]


def make_config(
    values: Mapping[str, Any], overrides: Overrides = (), *, of_run: bool = False
) -> RunConfig:
    """Settings from a parsed TOML file and from `key=value` strings or a mapping, which take
    precedence.

    The settings of a run (`of_run`) were checked when it was made. Its model checks them again when
    it is built; to check them here would make every list wait for torch."""
    merged = {key: dict(part) if isinstance(part, dict) else part for key, part in values.items()}
    # A file need not name the model; the default is the one that this library is about.
    merged["model"] = {"name": "ltocf"} | merged.get("model", {})
    wanted = parse_overrides(overrides)
    for key, value in wanted.items():  # the model first, since the section of a key depends on it
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
    """The overrides from which `make_config` makes these settings, apart from the data set."""
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
    """Choose the model; settings that the file gives for another model are dropped."""
    if merged["model"].get("name") != name:
        merged["model"] = {"name": name}


def _loss(values: Mapping[str, Any]) -> Loss:
    name = str(values.get("name", "bpr"))
    if name not in LOSSES:
        raise ConfigError(f"unknown loss {name!r}; choose one of: {', '.join(LOSSES)}")
    return validated(LOSSES[name], values, f"[loss] of {name!r}")


def parse_overrides(overrides: Overrides) -> dict[str, Any]:
    """Values by key. The value of `key=value` is read as TOML if it is TOML, else as text."""
    if isinstance(overrides, Mapping):
        return {key: _plain(value) for key, value in overrides.items()}
    return dict(map(_parse_override, overrides))


def _plain(value: Any) -> Any:
    """The value as TOML would read it back, so that a saved config equals the given one."""
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
        # TOML, so that lists, booleans and numbers are written as in a config file; a word that is
        # none of these is the text itself, which saves quotes in a shell.
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def means_something(key: str, model: str) -> bool:
    """Whether a model uses a setting: a closed form is not trained, and some models fix their
    loss."""
    section, name = _find(key, model)
    kind = MODELS.get(model)
    if kind is None or section not in ("loss", "train"):
        return True
    if kind.solved():
        return section == "train" and name in ("protocol", "validation", "validation_cut")
    return section == "train" or bool(kind.losses)


def _place(key: str, model: str) -> tuple[str, str]:
    """The section and the name of a key that the model uses."""
    if not means_something(key, model):
        solved = MODELS[model].solved()
        why = "it is solved in closed form, not trained" if solved else "its loss is fixed"
        raise ConfigError(f"{key!r} means nothing to {model!r}: {why}")
    return _find(key, model)


def _find(key: str, model: str) -> tuple[str, str]:
    """The section and the name of a key such as `train.epochs`, or of a bare `epochs`: a bare key
    that the model's config has belongs to the model."""
    section, dot, name = key.rpartition(".")
    if dot:
        return section, name
    return _section(name, model), "name" if name == "loss" else name


def _section(name: str, model: str) -> str:
    kind = MODELS.get(model)
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

"""ltocf models"""

from __future__ import annotations

from ltocf.cli.output import Json, print_json


def models(as_json: Json = False) -> None:
    """What --model takes, and the settings of each."""
    from ltocf.models import MODELS

    settings = {name: kind.Config().model_dump(mode="json") for name, kind in MODELS.items()}
    if as_json:
        print_json(settings)
        return
    for name, kind in MODELS.items():
        first_line = (kind.__doc__ or "").strip().splitlines()[0]
        print(f"{name}: {first_line}")
        if settings[name]:
            print("    " + "  ".join(f"{key}={value}" for key, value in settings[name].items()))

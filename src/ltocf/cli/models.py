"""ltocf models"""

from __future__ import annotations

from typing import Annotated

import typer

from ltocf.cli.output import Json, print_json


def models(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[MODEL]", help="Show the settings of this model.", show_default=False
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """List the models that --model takes, or the settings of one model and their defaults."""
    from ltocf.models import MODELS, summary, usual_settings

    if name is None and not as_json:
        for known in MODELS:
            print(f"{known:<12} {summary(known)}")
        print(f"{'auto':<12} A search for the best of these models and of their blends.")
        print("ltocf models MODEL shows the settings of one model.")
        return
    settings = {known: usual_settings(known) for known in ([name] if name else MODELS)}
    if as_json:
        print_json(settings)
    elif name is not None:
        print(summary(name))
        for key, value in settings[name].items():
            print(f"  {key} = {value!r}")

"""ltocf configs"""

from __future__ import annotations

from ltocf.cli.output import Json, print_json, print_table


def configs(as_json: Json = False) -> None:
    """List the settings that come with the package: what 'ltocf train --config' takes by name."""
    from ltocf.config import shipped_configs
    from ltocf.runs.settings import read_config

    shipped = {name: read_config(path) for name, path in shipped_configs().items()}
    if as_json:
        print_json({name: config.model_dump(mode="json") for name, config in shipped.items()})
        return
    rows = [[name, config.dataset, config.model_name] for name, config in shipped.items()]
    print_table("ltocf train --config NAME", ["name", "data set", "model"], rows)

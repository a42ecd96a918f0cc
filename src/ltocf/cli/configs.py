"""ltocf configs"""

from __future__ import annotations

from ltocf.cli.output import Json, print_json, print_table


def configs(as_json: Json = False) -> None:
    """List the config files that come with the package, for 'ltocf train --config NAME'."""
    from ltocf.config import read_toml, shipped_configs

    files = shipped_configs()
    if as_json:
        from ltocf.runs.settings import read_config

        shipped = {name: read_config(path) for name, path in files.items()}
        print_json({name: config.model_dump(mode="json") for name, config in shipped.items()})
        return
    written = {name: read_toml(path) for name, path in files.items()}
    rows = [[name, str(toml["dataset"]), toml["model"]["name"]] for name, toml in written.items()]
    print_table("ltocf train --config NAME", ["name", "data set", "model"], rows)

"""ltocf datasets"""

from __future__ import annotations

from ltocf.cli.output import Json, print_json, print_table


def datasets(as_json: Json = False) -> None:
    """List the data sets that 'ltocf train' knows by name."""
    from dataclasses import asdict

    from ltocf.data.sources.published import PUBLISHED

    if as_json:
        print_json({name: asdict(about) for name, about in PUBLISHED.items()})
        return
    rows = [
        [name, *(f"{n:,}" for n in (about.users, about.items, about.train, about.test))]
        for name, about in PUBLISHED.items()
    ]
    columns = ["name", "users", "items", "train", "test"]
    print_table("published sets, downloaded on first use (and 'town', built in)", columns, rows)

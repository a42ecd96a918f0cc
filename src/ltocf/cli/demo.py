"""ltocf demo"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ltocf.cli.output import Json, print_json, print_table, say, show_progress

# Popularity is the floor, MF has no graph, LightGCN no learned times.
COMPARED = ("popularity", "mf", "lightgcn", "ltocf")


def demo(
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="DIR", help="Where the runs go.")
    ] = Path("runs/demo"),
    epochs: Annotated[int, typer.Option(help="Of training, for each model.")] = 12,
    as_json: Json = False,
) -> None:
    """The whole tour on built-in data: train, compare, recommend. About a minute."""
    from ltocf.recommend.recommender import Recommender
    from ltocf.runs.pipeline import start_run, train_run
    from ltocf.runs.settings import make_config, means_something

    say("A town of 2,000 people and 1,500 places; who will like what?")
    metrics = {}
    for name in COMPARED:
        length = [f"epochs={epochs}"] if means_something("epochs", name) else []
        config = make_config({}, ["dataset=town", f"model={name}", *length])
        run = start_run(config, output / name, overwrite=True)
        with show_progress(training=name) as progress:
            metrics[name] = train_run(run, progress)
    recommender = Recommender.load(output / "ltocf")
    people = recommender.dataset.split.train.user_ids.ids.head(3).to_list()
    found = recommender.recommend(people, 5)
    if as_json:
        print_json({"metrics": metrics, "recommendations": found.to_dicts()})
        return
    print_table(
        "\nOn visits the models have not seen",
        ["model", "Recall@20", "NDCG@20"],
        [[n, f"{m['recall@20']:.4f}", f"{m['ndcg@20']:.4f}"] for n, m in metrics.items()],
    )
    for person in people:
        rows = found.filter(found["user"] == person).to_dicts()
        cells = [[str(row["name"]), f"{row['score']:.2f}"] for row in rows]
        print_table(f"\nFor {person}", ["place", "score"], cells)
        print(f"the first, {recommender.explain(person, rows[0]['item']).sentence(2)}")
    print(f"\nCurves: {output / 'ltocf' / 'curves.png'}")
    print(f"Next:   ltocf recommend {output / 'ltocf'} --user {people[0]}")

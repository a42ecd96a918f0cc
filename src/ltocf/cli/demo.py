"""ltocf demo"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ltocf.cli.output import Json, print_json, print_table, say
from ltocf.progress import show_progress

# Popularity is the floor, MF has no graph, LightGCN no learned times.
COMPARED = ("popularity", "mf", "lightgcn", "ltocf")


def demo(
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="DIR", help="Where the runs go.")
    ] = Path("runs/demo"),
    epochs: Annotated[int, typer.Option(help="Epochs of training for each model.")] = 12,
    quick: Annotated[
        bool, typer.Option("--quick", help="Use a smaller town; it takes a few seconds.")
    ] = False,
    serve: Annotated[
        bool, typer.Option("--serve", help="Then serve the town and open its page.")
    ] = False,
    as_json: Json = False,
) -> None:
    """The whole tour on built-in data: train, compare, recommend. About a minute."""
    from ltocf.data.sources.town import make_town
    from ltocf.pictures.curves import draw_metrics
    from ltocf.recommend.recommender import Recommender
    from ltocf.runs.pipeline import start_run, train_run
    from ltocf.runs.settings import make_config, means_something

    town = (make_town(people=300, places=200) if quick else make_town()).dataset
    train = town.split.train
    say(f"A town of {train.n_users:,} people and {train.n_items:,} places; who will like what?")
    metrics = {}
    for name in COMPARED:
        length = [f"epochs={epochs}"] if means_something("epochs", name) else []
        config = make_config({}, ["dataset=town", f"model={name}", *length])
        run = start_run(config, output / name, dataset=town, overwrite=True)
        with show_progress(training=name) as progress:
            metrics[name] = train_run(run, progress)
    recommender = Recommender.load(output / "ltocf")
    people = recommender.dataset.split.train.user_ids.ids.head(3).to_list()
    found = recommender.recommend(people, 5)
    draw_metrics(metrics, output / "compared.png")
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
    print(f"\nCompared: {output / 'compared.png'}   curves: {output / 'ltocf' / 'curves.png'}")
    print(f"Next:   ltocf recommend {output / 'ltocf'} --user {people[0]}")
    if serve:
        serve_town(output)


def serve_town(output: Path) -> None:
    from ltocf.cli.serve import serve_until_stopped, settings_of

    # Events are kept beside the run, because the next demo replaces the run.
    serve_until_stopped(settings_of(output / "ltocf", str(output / "events.db")), open_browser=True)

import json

from benchmarks import ingest


def test_the_ingest_benchmark_compares_both_paths_on_the_same_log(monkeypatch, capsys, tmp_path):
    arguments = ["ingest", "--rows", "20000", "--repeats", "1", "--work", str(tmp_path), "--json"]
    monkeypatch.setattr("sys.argv", arguments)
    ingest.main()
    result = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert result["ratio"] == result["pandas"]["seconds"] / result["ltocf"]["seconds"]
    assert result["ltocf"]["rows_per_second"] == 20_000 / result["ltocf"]["seconds"]
    assert result["ltocf"]["peak_mb"] > 10
    assert list(tmp_path.iterdir()) == []


def test_both_paths_keep_the_same_users_items_and_numbers_of_pairs(tmp_path):
    import polars as pl

    log = tmp_path / "log.csv"
    ingest.generate(log, tmp_path, 30_000)
    kept = {}
    for side in ("ltocf", "pandas"):
        ingest.STEPS[side](log, tmp_path / side, 30_000)
        tables = {path.stem: pl.read_parquet(path) for path in (tmp_path / side).glob("*.parquet")}
        train = tables["train"].group_by("user").len().sort("user")
        kept[side] = (
            tables["users"]["id"].to_list(),
            tables["items"]["id"].to_list(),
            train["len"].sum() + tables["test"].height,
        )
    assert kept["ltocf"] == kept["pandas"]
    assert len(kept["ltocf"][0]) > 100

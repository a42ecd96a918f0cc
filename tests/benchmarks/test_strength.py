import json

from benchmarks import strength


def test_the_strength_benchmark_gives_both_sides_and_their_ratio(monkeypatch, capsys):
    arguments = ["--people", "150", "--artists", "80", "--seeds", "1", "--models", "gfcf", "ease"]
    monkeypatch.setattr("sys.argv", ["strength", *arguments, "--json"])
    strength.main()
    result = json.loads(capsys.readouterr().out.splitlines()[-1])
    for name in ("gfcf", "ease"):
        often = result["recall@20"][name]["often"]
        assert result["ratio"][name]["often"] == round(often["plays"] / often["pairs"], 3)
        assert often["plays"] > often["pairs"], "what people came back to is found more often"

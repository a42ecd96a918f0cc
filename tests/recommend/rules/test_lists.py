"""Rules in lists: the same for one user, for everybody and for what is similar."""

import json

import numpy as np
import polars as pl
import pytest

from ltocf.errors import ConfigError
from ltocf.ranking.beyond import intra_list_diversity
from ltocf.recommend.bulk import recommend_all
from ltocf.recommend.recommender import Recommender
from ltocf.recommend.rules import Rules


@pytest.fixture(scope="module")
def ease(hamlet):
    return Recommender("ease").fit(hamlet)


@pytest.fixture(scope="module")
def run(ease, tmp_path_factory):
    path = tmp_path_factory.mktemp("rules") / "run"
    ease.save(path)
    return path


@pytest.fixture(scope="module")
def users(hamlet):
    return hamlet.split.train.user_ids.ids.to_list()


@pytest.fixture(scope="module")
def kind(hamlet):
    return hamlet.item_names["kind"].value_counts(sort=True)["kind"][0]


def of_kind(hamlet, kind):
    ids = hamlet.split.train.item_ids.ids
    return ids.filter(hamlet.item_names["kind"] == kind).to_list()


def test_a_filter_is_the_list_of_the_filtered_candidates(ease, hamlet, users, kind):
    filtered = ease.recommend(users, 5, rules=Rules.parse(f"kind={kind}"))
    assert filtered.equals(ease.recommend(users, 5, candidates=of_kind(hamlet, kind)))
    history = hamlet.split.train.item_ids.ids.head(3).to_list()
    new = ease.recommend_new(history, 5, rules=Rules.parse(f"kind={kind}"))
    assert new.equals(ease.recommend_new(history, 5, candidates=of_kind(hamlet, kind)))


def test_no_rules_are_empty_rules(ease, users):
    assert ease.recommend(users, 5).equals(ease.recommend(users, 5, rules=Rules.parse()))


def test_a_boost_is_named_and_moves_its_items(ease, users, kind):
    boosted = ease.recommend(users, 5, rules=Rules.parse(boost=f"kind={kind}:1000"))
    of_it = boosted["kind"] == kind
    assert (boosted["moved_by"].is_not_null() == of_it).all()
    assert set(boosted["moved_by"].drop_nulls()) == {f"kind={kind}:1000"}
    assert of_it.mean() > (ease.recommend(users, 5)["kind"] == kind).mean()


def test_at_most_one_of_each_kind(ease, users):
    found = ease.recommend(users[:20], 4, rules=Rules.parse(at_most="1:kind"))
    assert (found.group_by("user").agg(pl.col("kind").is_duplicated().sum())["kind"] == 0).all()


def test_a_pin_comes_first_for_all_who_do_not_have_it(ease, hamlet, users):
    known = hamlet.split.known
    item = hamlet.split.train.item_ids.ids[0]
    found = ease.recommend(users, 3, rules=Rules.parse(pin=[item]))
    have = {users[user] for user in known.users[known.items == 0]}
    for (user,), rows in found.group_by("user"):
        assert (rows.sort("rank")["item"][0] == item) == (user not in have)


@pytest.mark.parametrize("by", ["attributes", "vectors"])
def test_diversity_makes_lists_less_alike(ease, hamlet, users, by):
    def spread(diversity):
        rules = Rules.parse(diversity=diversity, by=by)
        found = ease.recommend(users, 5, rules=rules)
        rows = hamlet.split.train.item_ids.find(found["item"].to_list()).reshape(-1, 5)
        likeness = hamlet.catalogue.attributes if by == "attributes" else ease.fitted.item_vectors
        return intra_list_diversity(rows, likeness).mean()

    assert spread(0.0) < spread(0.5) <= spread(1.0)


def test_diversity_by_attributes_needs_some(hamlet, users):
    from dataclasses import replace

    bare = Recommender("popularity").fit(replace(hamlet, item_names=None))
    with pytest.raises(ConfigError, match="needs categories or tags"):
        bare.recommend(users, 3, rules=Rules.parse(diversity=0.5))
    assert bare.recommend(users, 3, rules=Rules.parse(diversity=0.5, by="vectors")).height


def test_what_is_similar_keeps_the_rules(ease, hamlet, kind):
    item = hamlet.split.train.item_ids.ids[4]
    found = ease.similar_items(item, 3, rules=Rules.parse(f"kind={kind}"))
    everything = ease.similar_items(item, 100)
    assert (
        found["similar"].to_list()
        == (everything.filter(pl.col("kind") == kind)["similar"].to_list()[:3])
    )


def test_what_is_not_available_is_in_no_list(hamlet, users):
    from dataclasses import replace

    gone = np.arange(hamlet.split.train.n_items) % 3 == 0
    names = hamlet.item_names.with_columns(available=~pl.Series(gone))
    shop = Recommender("popularity").fit(replace(hamlet, item_names=names))
    rows = hamlet.split.train.item_ids.find(shop.recommend(users, 90)["item"].to_list())
    assert not gone[rows].any()


def test_bulk_and_shell_keep_the_rules(ease, run, ltocf, tmp_path, users, kind):
    rules = Rules.parse(f"kind={kind}", boost="name~a:2", at_most="2:neighbourhood")
    recommend_all(ease, tmp_path / "all.parquet", 3, rules=rules)
    expected = ease.recommend(users, 3, rules=rules)
    assert pl.read_parquet(tmp_path / "all.parquet").equals(expected)
    (tmp_path / "out.txt").write_text(f"{expected['item'][0]}\n\n")
    options = ("--where", f"kind={kind}", "--boost", "name~a:2", "--at-most", "2:neighbourhood")
    code, out, _ = ltocf("recommend", run, "-u", users[0], "-k", 3, "--json", *options)
    shown = json.loads(out)["recommendations"]
    assert code == 0
    assert shown == expected.filter(pl.col("user") == users[0]).to_dicts()
    exclude = ("--exclude-file", tmp_path / "out.txt")
    code, out, _ = ltocf("recommend", run, "-u", users[0], "-k", 3, "--json", *options, *exclude)
    assert expected["item"][0] not in {row["item"] for row in json.loads(out)["recommendations"]}
    code, _, err = ltocf("recommend", run, "-u", users[0], "--where", "price<3")
    assert (code, "no attribute 'price'" in err) == (2, True)

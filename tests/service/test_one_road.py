"""A list is the same, and an item is called alike, whoever asks: Python, the shell, the service."""

import json
from dataclasses import replace
from urllib.parse import quote

import numpy as np
import polars as pl
import pytest

from ltocf.errors import ConfigError
from ltocf.models import MODELS
from ltocf.recommend.explain import reasons_of
from ltocf.recommend.lists import ListOptions, final_scores, make_lists
from ltocf.recommend.people import Person
from ltocf.recommend.recommender import Recommender
from ltocf.recommend.rules import Rules
from ltocf.service.lists import ListRequest, answer_lists, reasons_text, refuse_too_much
from ltocf.service.live_quality import ranks_before
from ltocf.service.problems import Problem
from ltocf.service.served_model import ServedModel
from ltocf.service.store.events import Event
from tests.models.toys import two_communities, used_by

OWN_PART = {"random"}  # scores of known people that do not follow from what they have


@pytest.fixture(scope="module")
def toy():
    """`toy("ease")`: each model of two communities, fitted once and in a moment."""
    made, data = {}, two_communities()

    def fit(name):
        if name not in made:
            fields = MODELS[name].Config.model_fields
            small = {key: 4 for key in ("dim", "rank") if key in fields}
            made[name] = Recommender(name, **used_by(name, epochs=1), **small).fit(data)
        return made[name]

    return fit


def served_list(served, person, user=None, **options):
    (found,) = answer_lists([ListRequest(served, person, ListOptions(**options), user)])
    return json.loads(found.text(with_model=False))


def shown(table):
    return list(zip(table["item"], table["score"], strict=True))


def listed(answer):
    return [(entry["item"], entry["score"]) for entry in answer["items"]]


@pytest.mark.parametrize("name", MODELS)
def test_the_service_lists_what_the_recommender_lists(name, toy):
    recommender = toy(name)
    served = ServedModel(recommender)
    users = recommender.fitted.seen.user_ids.ids.to_list()[::7]
    table = recommender.recommend(users, 5)
    people = [served.person(user, []) for user in users]
    requests = [ListRequest(served, person, ListOptions(5)) for person in people]
    for user, reply in zip(users, answer_lists(requests), strict=True):
        theirs = table.filter(pl.col("user") == user)
        items = json.loads(reply.text(with_model=False))["items"]
        assert [entry["item"] for entry in items] == theirs["item"].to_list()
        scores = [entry["score"] for entry in items]
        assert scores == pytest.approx(theirs["score"].to_list(), rel=1e-5, abs=1e-6)
    stranger = served_list(served, served.person("a stranger", []), k=3)
    popular = recommender.recommend_new([], 3)
    assert (stranger["source"], listed(stranger)) == ("popularity", shown(popular))


@pytest.mark.parametrize("name", MODELS)
def test_a_person_with_events_is_the_joined_history_of_a_model_without_own_parts(name, toy):
    recommender = toy(name)
    fitted, row = recommender.fitted, 3
    new = np.array([12, 9], np.int32)
    joined = np.concatenate([fitted.train.items_of(row), new])
    with_events = Person(row, new, np.array([1, 2]))
    try:
        bare = final_scores(fitted, [Person.of_history(joined)], ListOptions(keep_seen=True))
    except ConfigError as refusal:  # a model of its users' own vectors alone
        assert "recommend from a history" in str(refusal)
        assert not fitted.scorer.follows_history
        return
    found = final_scores(fitted, [with_events], ListOptions(keep_seen=True))
    if recommender.model.solved(recommender.model.config) and name not in OWN_PART:
        np.testing.assert_allclose(found, bare, rtol=1e-4, atol=1e-5)
    (one,) = make_lists(fitted, [with_events], ListOptions(5))
    assert not set(one.items.tolist()) & set(joined.tolist())


def test_options_of_each_are_theirs_alone(toy):
    fitted = toy("ease").fitted
    people = [Person(row) for row in (0, 1, 2, 17)]
    blocked = np.zeros(fitted.seen.n_items, bool)
    blocked[:4] = True
    options = [
        ListOptions(3),
        ListOptions(7, keep_seen=True),
        ListOptions(5, blocked=blocked),
        ListOptions(2, rules=Rules(pin=("item 5",))),
    ]
    together = make_lists(fitted, people, options)
    for person, one, found in zip(people, options, together, strict=True):
        (alone,) = make_lists(fitted, [person], one)
        assert found.items.tolist() == alone.items.tolist()
        np.testing.assert_allclose(found.scores, alone.scores, rtol=1e-5, atol=1e-6)
    assert [len(found.items) for found in together] == [3, 7, 5, 2]
    assert set(together[2].items.tolist()).isdisjoint(range(4))
    assert together[3].items[0] == 5


@pytest.fixture
def shop(hamlet):
    """A third of the items is not available, and what names them is called otherwise."""
    gone = np.arange(hamlet.split.train.n_items) % 3 == 0
    names = hamlet.item_names.rename({"name": "shop_name"}).select("kind", "shop_name")
    table = names.with_columns(available=~pl.Series(gone))
    return Recommender("ease").fit(replace(hamlet, item_names=table)), gone


def test_what_is_not_available_is_in_no_list_of_the_service(shop):
    recommender, gone = shop
    served = ServedModel(recommender)
    for user in recommender.fitted.seen.user_ids.ids.head(5):
        found = listed(served_list(served, served.person(user, []), k=90))
        assert found == shown(recommender.recommend(user, 90))
        assert not gone[served.item_rows([item for item, _ in found])].any()


def test_an_item_is_called_alike_by_the_shell_and_the_service(shop, ltocf, tmp_path):
    recommender, _ = shop
    served, user = ServedModel(recommender), recommender.fitted.seen.user_ids.ids[0]
    best = served_list(served, served.person(user, []), k=1)["items"][0]
    rows = served.item_rows([best["item"]])
    (why,) = reasons_of(recommender.fitted, served.person(user, []), rows)
    first = json.loads("{" + reasons_text(served, why, most=None) + "}")["because"][0]
    assert recommender.explain(user, best["item"]).sentence(1) == f"because of {first['name']}"
    recommender.save(tmp_path / "run")
    code, out, _ = ltocf("explain", tmp_path / "run", "-u", user, "-i", best["item"], "--json")
    told = json.loads(out)
    assert code == 0
    assert told["sentence"].startswith(f"because of {first['name']}")
    assert told["because"][0]["shop_name"] == first["name"]
    code, out, _ = ltocf("recommend", tmp_path / "run", "-u", user, "-k", 1, "--json")
    assert json.loads(out)["recommendations"][0]["shop_name"] == best["name"]


def test_the_judge_finds_an_item_at_its_place_in_the_list(shop, store):
    recommender, gone = shop
    served, user = ServedModel(recommender), recommender.fitted.seen.user_ids.ids[0]
    found = listed(served_list(served, served.person(user, []), k=90))
    missing = recommender.fitted.seen.item_ids.ids[int(np.flatnonzero(gone)[0])]
    items = [found[0][0], found[6][0], missing]
    (events,) = store.add([[Event(user, item, 1_750_000_000_000_000) for item in items]])
    ranks = [int(ranks_before(served, store, [event])[0]) for event in (events[0], events[2])]
    assert ranks == [1, 0]
    after = served_list(served, served.person(user, events[:1]), k=90)
    place = [item for item, _ in listed(after)].index(items[1]) + 1
    assert ranks_before(served, store, [events[1]]).tolist() == [place]


def test_rules_over_http_are_those_of_the_shell(serve, fitted, hamlet):
    client, recommender = serve("ease"), fitted("ease")
    user, pin = hamlet.split.train.user_ids.ids[0], hamlet.split.train.item_ids.ids[7]
    kind = hamlet.item_names["kind"].value_counts(sort=True)["kind"][0]
    given = {"boost": f"kind={kind}:3", "at_most": "2:neighbourhood", "pin": pin, "diversity": 0.3}
    rules = Rules.parse(**given | {"pin": [pin]})
    table = recommender.recommend(user, 8, rules=rules)
    query = "&".join(f"{name}={quote(str(value))}" for name, value in given.items())
    by_query = client.get(f"/users/{user}/recommendations?k=8&{query}").json()
    lists = {name: [given[name]] for name in ("boost", "at_most", "pin")}
    body = {"users": [user], "k": 8, "diversity": 0.3} | lists
    (by_body,) = client.post("/recommendations", body).json()["lists"]
    for found in (by_query, by_body):
        assert [entry["item"] for entry in found["items"]] == table["item"].to_list()
        assert [entry.get("moved_by") for entry in found["items"]] == table["moved_by"].to_list()
    similar = client.get(f"/items/{pin}/similar?k=4&where=kind={quote(kind)}").json()["items"]
    expected = recommender.similar_items(pin, 4, rules=Rules.parse(f"kind={kind}"))
    assert [entry["item"] for entry in similar] == expected["similar"].to_list()
    unread = client.get(f"/users/{user}/recommendations?boost=new")
    assert (unread.status, "CONDITION:FACTOR" in unread.json()["detail"]) == (404, True)
    long = client.get(f"/users/{user}/recommendations?k=80&diversity=0.5")
    assert long.status == 200
    with pytest.raises(Problem, match="up to 100 items, not k=200"):
        refuse_too_much(1, 200, False, True)

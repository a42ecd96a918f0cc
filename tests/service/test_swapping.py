"""A swap under load: no request fails, and each answer is wholly of one model."""

import gc
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor

import pytest

from ltocf.data.catalogue import ItemChange
from ltocf.recommend.lists import ListOptions, make_lists
from ltocf.recommend.people import Person
from ltocf.recommend.recommender import Recommender
from ltocf.recommend.rules import Rules
from ltocf.service.served_model import ServedModel


def test_answers_during_swaps_are_wholly_old_or_wholly_new(serve, fitted):
    models = {"old": fitted("ease"), "new": fitted("chebycf")}
    client = serve(ServedModel(models["old"], "old"))
    users = models["old"].dataset.split.train.user_ids.ids.to_list()[:30]
    tables = {name: model.recommend(users, 10) for name, model in models.items()}
    lists = {
        (name, user): table.filter(table["user"] == user)["item"].to_list()
        for name, table in tables.items()
        for user in users
    }
    assert any(lists["old", user] != lists["new", user] for user in users)
    ended, seen = threading.Event(), set()

    def ask(first):
        n = first
        while not ended.is_set():
            user = users[n % len(users)]
            reply = client.get(f"/users/{user}/recommendations")
            assert reply.status == 200
            found = reply.json()
            assert [entry["item"] for entry in found["items"]] == lists[found["model"], user]
            seen.add(found["model"])
            many = client.post("/recommendations", {"users": users[:5]}).json()
            for one in many["lists"]:
                found = [entry["item"] for entry in one["items"]]
                assert found == lists[many["model"], one["user"]]
            n += 1

    with ThreadPoolExecutor() as pool:
        asking = [pool.submit(ask, first) for first in (0, 7, 19)]
        swaps = 0
        while swaps < 30 or (len(seen) < 2 and not any(one.done() for one in asking)):
            name = ("new", "old")[swaps % 2]
            client.live.swap(ServedModel(models[name], name))
            swaps += 1
        ended.set()
        for one in asking:
            one.result()
    assert seen == {"old", "new"}


@pytest.mark.parametrize("name", ["ltocf", "chebycf"])
def test_a_model_that_is_served_no_more_goes_without_a_search_for_garbage(name, fitted, tmp_path):
    """A service hardly ever looks for any, and never among what it was started with."""
    fitted(name).save(tmp_path / "run")
    first = ServedModel(Recommender.load(tmp_path / "run"))
    changed = first.with_items([ItemChange(first.item_ids[0], {"name": "changed"})])
    gone = []
    gc.collect()
    gc.disable()
    try:
        for served in (first, changed):
            served.warm_up()
            (found,) = make_lists(served.fitted, [Person(0)], ListOptions(3))
            assert served.entries(found, Rules())
            gone += map(weakref.ref, (served, served.recommender, served.fitted.scorer))
        del first, changed, served, found
        assert [one() for one in gone] == [None] * 6
    finally:
        gc.enable()

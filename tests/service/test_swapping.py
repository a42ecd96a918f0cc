"""A swap under load: no request fails, and each answer is wholly of one model."""

import threading
from concurrent.futures import ThreadPoolExecutor

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

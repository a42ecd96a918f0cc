"""The next list knows each event: it is the list of the joined history, to the last bit."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from ltocf.recommend.recommender import Recommender
from ltocf.service.popularity import Popularity
from ltocf.service.served_model import ServedModel
from ltocf.service.store.events import Event
from tests.histories import history_matrix

MODELS = ["ltocf", "lightgcn", "chebycf", "ease", "blend"]
MEMBERS = [
    {"model": "ltocf", "weight": 1.0, "options": {"dim": 8}},
    {"model": "ease", "weight": 0.5},
]
RECENT = [("ltocf", 0.5), ("ease", 0.5)]


def touch(client, user, items, start=1_750_000_000):
    events = [{"user": user, "item": item, "time": start + n} for n, item in enumerate(items)]
    assert client.post("/events", {"events": events}).status == 201


def expected(recommender, history, k=10, **options):
    table = recommender.recommend_new(history, k, **options)
    return list(zip(table["item"], table["score"], strict=True))


@pytest.mark.parametrize("name", MODELS)
def test_a_newcomers_list_is_that_of_their_events(name, fitted, serve):
    client, recommender = serve(name), fitted(name)
    items = recommender.dataset.split.train.item_ids.ids.to_list()
    for n in range(1, 5):
        touch(client, "newcomer", [items[7 * n]], start=1_750_000_000 + n)
        history = [items[7 * m] for m in range(1, n + 1)]
        assert client.items("newcomer") == expected(recommender, history)


def join(train, user):
    """What a user has in the order of time, and three items that are new to them."""
    old = train.items_of(user)
    times = train.timestamps[train.indptr[user] : train.indptr[user + 1]]
    new = [row for row in range(train.n_items) if row not in old][:3]
    return [*old[np.argsort(times, kind="stable")], *new], new


@pytest.mark.parametrize("name", ["chebycf", "ease", "blend"])
def test_a_known_users_list_is_that_of_their_joined_history(name, fitted, serve):
    """Of a closed form, and of a blend of them, a known user is their history."""
    client, recommender = serve(name), fitted(name)
    train = recommender.dataset.split.train
    user, items = train.user_ids.ids[5], train.item_ids.ids
    joined, new = join(train, 5)
    touch(client, user, items[new].to_list())
    assert client.items(user) == expected(recommender, items[joined].to_list())


@pytest.mark.parametrize("name", [*MODELS, "blend of ltocf and ease"])
def test_a_known_users_list_is_that_of_a_model_asked_with_their_joined_history(
    name, fitted, hamlet, serve
):
    """And with their own part, of those models that have one: also inside a blend."""
    mixed = Recommender("blend", members=MEMBERS, epochs=4, negatives=4, protocol="fixed")
    recommender = fitted(name) if name in MODELS else mixed.fit(hamlet)
    client, train = serve(ServedModel(recommender)), recommender.dataset.split.train
    joined, new = join(train, 5)
    before = client.items(train.user_ids.ids[5])
    touch(client, train.user_ids.ids[5], train.item_ids.ids[new].to_list())
    history = history_matrix([np.array(joined)], train.n_items)
    (scores,) = recommender.scorer.from_history(history, np.array([5], np.int32))
    scores[joined] = -np.inf
    best = np.argsort(-scores, kind="stable")[:10]
    found = client.items(train.user_ids.ids[5])
    assert found == list(zip(train.item_ids.ids[best.tolist()], scores[best].tolist(), strict=True))
    assert found != before


@pytest.mark.parametrize("name", ["ltocf", "lightgcn"])
def test_a_known_user_keeps_their_own_part(name, fitted, serve):
    """h(0) e_u, and A[u, j] times row j of g(A) E for every j of the joined history."""
    client, recommender = serve(name), fitted(name)
    model, train = recommender.model, recommender.dataset.split.train
    user, items = train.user_ids.ids[5], train.item_ids.ids
    new = [row for row in range(train.n_items) if row not in train.items_of(5)][:3]
    touch(client, user, items[new].to_list())
    joined = np.union1d(train.items_of(5), new)
    h0 = model.response(model.weight.new_zeros(1).double()).item()
    shares = 1 / np.sqrt(len(joined) * train.item_degrees[joined])
    rows = model.fold_in().history.astype(np.float64)[joined]
    vector = h0 * model.weight[5].detach().double().numpy() + shares @ rows
    scores = recommender.scorer.items.astype(np.float64) @ vector
    scores[joined] = -np.inf
    best = np.argsort(-scores, kind="stable")[:10]
    found = client.items(user)
    assert [item for item, _ in found] == items[best].to_list()
    assert_allclose([score for _, score in found], scores[best], rtol=1e-4)


@pytest.mark.parametrize("name", MODELS)
def test_without_events_a_known_users_list_is_as_ever(name, fitted, serve):
    recommender = fitted(name)
    user = recommender.dataset.split.train.user_ids.ids[5]
    table = recommender.recommend(user, 10)
    assert serve(name).items(user) == list(zip(table["item"], table["score"], strict=True))


@pytest.mark.parametrize(("name", "recency"), RECENT)
def test_with_recency_the_order_of_time_counts_not_that_of_arrival(name, recency, fitted, serve):
    recommender = fitted(name, recency=recency)
    client = serve(ServedModel(recommender))
    items = recommender.dataset.split.train.item_ids.ids.to_list()
    for place, time in ((3, 30), (1, 10), (2, 20)):
        client.post("/events", {"user": "n", "item": items[place], "time": time})
    assert client.items("n") == expected(recommender, [items[1], items[2], items[3]])
    assert client.items("n") != expected(recommender, [items[3], items[1], items[2]])


def test_what_a_user_now_has_is_left_out_unless_they_keep_it(serve, fitted):
    client = serve("ease")
    user = fitted("ease").dataset.split.train.user_ids.ids[0]
    (first, _), *_ = client.items(user)
    touch(client, user, [first])
    assert first not in [item for item, _ in client.items(user, k=80)]
    assert first in [item for item, _ in client.items(user, k=80, keep_seen="true")]


def test_before_their_first_event_people_get_what_is_popular_now(serve, fitted):
    client = serve("ltocf")
    train = fitted("ltocf").dataset.split.train
    reply = client.get("/users/stranger/recommendations?k=1").json()
    assert reply["source"] == "popularity"
    assert reply["items"][0]["score"] == train.item_degrees.max()
    assert "reasons" not in reply["items"][0]


def test_events_of_others_count_in_what_is_popular(serve, fitted):
    client = serve("ltocf")
    train = fitted("ltocf").dataset.split.train
    rare = train.item_ids.ids[int(train.item_degrees.argmin())]
    for n in range(int(train.item_degrees.max()) + 1):
        client.post("/events", {"user": f"fan {n}", "item": rare})
    client.live.popularity.count(client.live.served)  # as it is each second
    assert client.items("stranger", k=1)[0][0] == rare


def test_popularity_adds_new_events_and_counts_none_twice(store, fitted):
    train = fitted("ltocf").dataset.split.train
    item, other = train.item_ids.ids[0], train.item_ids.ids[1]
    served, popularity = ServedModel(fitted("ltocf")), Popularity(store)

    def counts():
        popularity.count(served)
        return [int(n) for n in (popularity.of(served) - train.item_degrees)[:2]]

    assert counts() == [0, 0]
    store.add([[Event("ann", item, 1), Event("ann", item, 2), Event("bob", item, 3)]])
    assert counts() == [2, 0]
    store.add([[Event("ann", item, 4), Event("cem", item, 5), Event("cem", other, 6)]])
    assert counts() == [3, 1]
    store.forget("cem")
    assert counts() == [2, 0]
    store.add([[Event("cem", other, 7)]])
    assert counts() == [2, 1]


def test_who_was_forgotten_starts_again(serve, fitted):
    client, recommender = serve("ltocf"), fitted("ltocf")
    train = recommender.dataset.split.train
    user, items = train.user_ids.ids[3], train.item_ids.ids.to_list()
    touch(client, user, items[:2])
    assert client.delete(f"/users/{user}").status == 204
    assert client.get(f"/users/{user}/history").status == 404
    assert client.get(f"/users/{user}/recommendations").json()["source"] == "popularity"
    touch(client, user, items[4:5])
    assert client.items(user) == expected(recommender, items[4:5])
    history = client.get(f"/users/{user}/history").json()
    assert (history["known"], [entry["item"] for entry in history["items"]]) == (False, items[4:5])


def test_reasons_add_up_to_the_score_also_after_events(serve, fitted):
    client = serve("ltocf")
    train = fitted("ltocf").dataset.split.train
    user, items = train.user_ids.ids[3], train.item_ids.ids.to_list()
    fresh = [items[row] for row in range(train.n_items) if row not in train.items_of(3)][:2]
    touch(client, user, fresh)
    reply = client.get(f"/users/{user}/recommendations?k=5&reasons=true").json()
    for entry in reply["items"]:
        why = entry["reasons"]
        total = (
            why["own"]
            + why["popularity"]
            + why["others"]
            + sum(part["contribution"] for part in why["because"])
        )
        assert_allclose(total, entry["score"], rtol=1e-4, atol=1e-6)
    item = reply["items"][0]["item"]
    whole = client.get(f"/explanations?user={user}&item={item}").json()
    assert set(fresh) <= {part["item"] for part in whole["because"]}
    assert whole["others"] == 0
    assert_allclose(whole["score"], reply["items"][0]["score"], rtol=1e-4, atol=1e-6)


def test_a_model_without_newcomers_says_so_and_serves_the_others(serve, fitted):
    client = serve("mf")
    train = fitted("mf").dataset.split.train
    user, item = train.user_ids.ids[0], train.item_ids.ids[0]
    touch(client, "newcomer", [item])
    reply = client.get("/users/newcomer/recommendations")
    assert (reply.status, "none for new ones" in reply.json()["detail"]) == (422, True)
    assert len(client.items(user)) == 10

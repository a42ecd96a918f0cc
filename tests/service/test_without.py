"""Counterfactuals: the list that somebody would have without one click, exactly."""

import pytest


@pytest.mark.parametrize("name", ["ltocf", "ease", "chebycf", "blend"])
def test_without_a_click_the_list_is_that_of_somebody_who_never_clicked(serve, name):
    client = serve(name)
    items = client.live.served.item_ids
    for item in items[:4]:
        client.post("/events", {"user": "ann", "item": item})
    for item in items[:3]:
        client.post("/events", {"user": "bob", "item": item})
    expected = client.items("bob")
    found = client.items("ann", without=items[3])
    assert [item for item, _ in found] == [item for item, _ in expected]
    assert [score for _, score in found] == pytest.approx(
        [score for _, score in expected], rel=1e-4
    )


def test_a_known_users_old_items_can_be_left_out_too(serve):
    client = serve("ease")
    served = client.live.served
    user = served.seen.user_ids.ids[0]
    old = client.get(f"/users/{user}/history").json()["items"]
    as_ever = client.items(user)
    changed = client.items(user, without=old[0]["item"])
    assert changed != as_ever
    body = {"history": [entry["item"] for entry in reversed(old[1:])], "k": 10}
    (fresh,) = client.post("/recommendations", body).json()["lists"]
    ranked = {entry["item"] for entry in fresh["items"]}
    assert len(ranked & {item for item, _ in changed}) >= 8  # recency may move the last ones
    reasons = client.get(f"/users/{user}/recommendations?reasons=true&without={old[0]['item']}")
    because = {
        part["item"] for one in reasons.json()["items"] for part in one["reasons"]["because"]
    }
    assert old[0]["item"] not in because


def test_without_everything_one_is_somebody_new(serve):
    client = serve("ltocf")
    item = client.live.served.item_ids[0]
    client.post("/events", {"user": "ann", "item": item})
    found = client.get(f"/users/ann/recommendations?without={item}").json()
    assert found["source"] == "popularity"
    assert client.get("/users/ann/recommendations?without=nothing").status == 404

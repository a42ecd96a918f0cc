"""Boards over HTTP, and lists of one category."""

import time
from collections import Counter

import numpy as np


def categories(client):
    return client.get("/model").json()["categories"]


def test_popular_counts_the_data_set_and_what_came_since(serve):
    client = serve()
    degrees = client.live.served.seen.item_degrees
    first = client.get("/popular?k=3").json()["items"]
    assert [entry["score"] for entry in first] == sorted(degrees, reverse=True)[:3]
    last = client.live.served.item_ids[int(np.argmin(degrees))]
    many = int(degrees.max()) + 5
    client.post("/events", {"events": [{"user": f"u{n}", "item": last} for n in range(many)]})
    client.app.state.boards._counted = None  # what it counted is good for seconds
    assert client.get("/popular?k=1").json()["items"][0]["item"] == last


def test_trending_is_what_rises_now(serve):
    client = serve()
    items = client.live.served.item_ids
    item, now = items[3], time.time()
    usual = [{"user": f"u{n}", "item": items[n % 9], "time": now - n * 8000} for n in range(300)]
    client.post("/events", {"events": usual})
    client.post("/events", {"events": [{"user": f"v{n}", "item": item} for n in range(60)]})
    found = client.get("/trending?k=3&window=7d").json()["items"]
    assert found[0]["item"] == item and found[0]["score"] > 1


def test_new_and_a_window_that_cannot_be_read(serve):
    client = serve()
    assert client.get("/new?k=2").status in (200, 409)
    refused = client.get("/popular?window=soon")
    assert refused.status == 422 and "window" in refused.json()["detail"]


def test_lists_search_and_boards_keep_to_a_category(serve):
    client = serve()
    one = categories(client)[0]
    counts = Counter(entry["name"] for entry in categories(client))
    assert one["items"] > 0 and max(counts.values()) == 1
    column, _, value = one["rule"].partition("=")
    for path in ("/popular", "/items", "/users/ann/recommendations"):
        found = client.get(f"{path}?k=3&where={one['rule'].replace(' ', '%20')}").json()["items"]
        assert found and all(entry["about"][column] == value for entry in found)
    body = {"history": [client.live.served.item_ids[0]], "k": 3, "where": [one["rule"]]}
    (listed,) = client.post("/recommendations", body).json()["lists"]
    assert all(entry["about"][column] == value for entry in listed["items"])
    assert client.get("/items?where=nothing%3D1").status == 404

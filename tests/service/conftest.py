"""A client without a port, models of a small town, and stores of events."""

import asyncio
import json
from urllib.parse import quote

import pytest

from ltocf.recommend.recommender import Recommender
from ltocf.service.app import create_app
from ltocf.service.served_model import ServedModel
from ltocf.service.store.events import EventStore
from ltocf.service.wire.test_client import ask

from .postgres import postgres, postgres_server  # noqa: F401 - fixtures

SETTINGS = {
    "ltocf": {"dim": 8, "epochs": 4, "negatives": 4, "protocol": "fixed"},
    "lightgcn": {"dim": 8, "epochs": 4, "negatives": 4, "protocol": "fixed"},
    "chebycf": {"rank": 8},
    "ease": {},
    "blend": {},
    "mf": {"dim": 8, "epochs": 2, "negatives": 4, "protocol": "fixed"},
    "cmn": {"dim": 8, "epochs": 1, "negatives": 2, "protocol": "fixed"},
    "ngcf": {"dim": 8, "epochs": 1, "negatives": 2, "protocol": "fixed"},
    "neumf": {"dim": 8, "epochs": 1, "negatives": 2, "protocol": "fixed"},
    "popularity": {},
}


class Client:
    """`client.get("/users/ann/history")` -> a reply with .status, .headers, .body and .json()."""

    def __init__(self, app):
        self.app, self.live = app, app.state.live

    def request(self, method, target, body=None, headers=None):
        sent = (
            body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        )
        return asyncio.run(ask(self.app, method, target, sent, headers))

    def get(self, target, **headers):
        return self.request("GET", target, None, headers)

    def post(self, target, body, **headers):
        return self.request("POST", target, body, headers)

    def delete(self, target, **headers):
        return self.request("DELETE", target, None, headers)

    def items(self, user, **options):
        """The ids and scores of a user's list."""
        query = "&".join(f"{key}={value}" for key, value in options.items())
        reply = self.get(f"/users/{quote(str(user), safe='')}/recommendations?{query}")
        assert reply.status == 200, reply.body
        return [(entry["item"], entry["score"]) for entry in reply.json()["items"]]


@pytest.fixture(scope="session")
def fitted(hamlet):
    """`fitted("ease")`: a recommender of the small town; each is fitted once."""
    made = {}

    def fit(name, **settings):
        key = (name, *sorted(settings.items()))
        if key not in made:
            made[key] = Recommender(name, **SETTINGS[name] | settings).fit(hamlet)
        return made[key]

    return fit


@pytest.fixture
def store(tmp_path):
    opened = EventStore.open(tmp_path / "events.db")
    yield opened
    opened.close()


@pytest.fixture
def serve(fitted, store):
    """`serve("ltocf")`: a client of a service of that model."""
    apps = []

    def start(name="ltocf", **options):
        served = name if isinstance(name, ServedModel) else ServedModel(fitted(name))
        apps.append(create_app(served, store, **options))
        return Client(apps[-1])

    yield start
    for app in apps:
        app.state.live.close()

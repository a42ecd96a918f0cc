"""Safe by default: who may ask, how often, and what every answer says."""

import asyncio

import pytest

from ltocf.errors import ConfigError
from ltocf.service.access.guard import LOOPBACK, Rules
from ltocf.service.server import Settings, listen
from ltocf.service.wire.test_client import ask

EVENT = {"user": "ann", "item": "none"}  # kept until the item is known


def bearer(token):
    return {"authorization": f"Bearer {token}"}


def test_with_a_token_writing_and_forgetting_need_it_and_reading_does_not(serve):
    client = serve("ltocf", rules=Rules(token="secret"))
    for given in ({}, bearer("wrong"), bearer(""), {"authorization": "secret"}, bearer("sécret")):
        for method, target in (("POST", "/events"), ("DELETE", "/users/ann")):
            reply = client.request(method, target, EVENT, given)
            assert (reply.status, reply.headers["www-authenticate"]) == (401, "Bearer")
    assert client.post("/events", EVENT, **bearer("secret")).status == 201
    assert client.get("/users/ann/recommendations").status == 200
    assert client.post("/recommendations", {"users": ["ann"]}).status == 200


def test_outside_loopback_everything_that_holds_data_needs_the_token(serve):
    client = serve("ltocf", rules=Rules(token="secret", read_needs_token=True))
    for target in ("/items", "/users", "/model", "/metrics", "/openapi.json", "/users/a/history"):
        assert client.get(target).status == 401
        assert client.get(target, **bearer("secret")).status in (200, 404)
    for target in ("/", "/static/style.css", "/static/page.js", "/health", "/ready"):
        assert client.get(target).status == 200


@pytest.mark.parametrize("path", ["//events", "/events/", "/EVENTS", "/./events", "/%65vents"])
def test_no_other_spelling_of_a_path_gets_around_the_token(serve, path):
    client = serve("ltocf", rules=Rules(token="secret"))
    assert client.post(path, EVENT).status in (307, 401, 404, 405)


def test_a_page_elsewhere_cannot_reach_a_service_on_loopback(serve):
    client = serve("ltocf", rules=Rules(hosts=LOOPBACK))
    assert client.get("/items", host="evil.example").status == 421
    for host in ("localhost:8000", "127.0.0.1", "[::1]:8000"):
        assert client.get("/items", host=host).status == 200
    simple = client.request("POST", "/events", b'{"user": "a"}', {"content-type": "text/plain"})
    assert simple.status == 422


def test_a_client_that_asks_too_often_is_told_to_slow_down(serve):
    client = serve("ltocf", rules=Rules(rate=2, burst_seconds=2))
    statuses = [client.get("/health").status for _ in range(8)]
    assert statuses[:4] == [200] * 4
    assert 429 in statuses
    assert client.get("/health").headers.get("retry-after") in (None, "1")


def test_every_answer_has_the_security_headers(serve):
    client = serve("ltocf")
    for target in ("/", "/static/page.js", "/items", "/nothing", "/users/a/recommendations?k=0"):
        headers = client.get(target).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy and "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert headers["referrer-policy"] == "no-referrer"


def test_no_answer_about_anybody_is_kept_by_a_cache(serve):
    """The next list must know the next event, and a shared cache must not hold people's lists."""
    client = serve("ltocf")
    for target in ("/users/ann/recommendations", "/users?k=1", "/metrics", "/nothing"):
        assert client.get(target).headers["cache-control"] == "no-store"
    assert client.get("/static/page.js").headers["cache-control"] == "no-cache"


@pytest.mark.parametrize("path", ["/../../etc/passwd", "/static/../app.py", "/%2e%2e/app.py"])
def test_no_path_reaches_the_file_system(serve, path):
    assert serve("ltocf").get(path).status == 404


def test_listening_to_other_machines_needs_a_token(tmp_path):
    with pytest.raises(ConfigError, match=r"host 0\.0\.0\.0 admits other machines"):
        _ = Settings(run=tmp_path, host="0.0.0.0").rules
    rules = Settings(run=tmp_path, host="0.0.0.0", token="x").rules
    assert (rules.read_needs_token, rules.rate, rules.hosts) == (True, 100.0, None)
    local = Settings(run=tmp_path).rules
    assert (local.read_needs_token, local.rate, local.hosts) == (False, None, LOOPBACK)


@pytest.mark.parametrize("how", [{"hosts": ("Shop.Example",)}, {"proxies": ("127.0.0.1",)}])
def test_behind_a_proxy_on_this_machine_everything_needs_the_token_too(tmp_path, serve, how):
    """The proxy brings everybody to loopback: histories of people would be there for all."""
    with pytest.raises(ConfigError, match="a name or a proxy admits other machines"):
        _ = Settings(run=tmp_path, **how).rules
    rules = Settings(run=tmp_path, token="secret", **how).rules
    assert (rules.read_needs_token, rules.rate) == (True, 100.0)
    client = serve("ltocf", rules=rules)
    assert client.get("/users", host="localhost").status == 401
    known = 401 if how.get("hosts") else 421
    assert client.get("/users", host="shop.example").status == known


def test_a_port_that_is_taken_is_an_error_of_one_line():
    taken = listen("127.0.0.1", 0)
    taken.listen()
    with pytest.raises(ConfigError, match=r"cannot listen on 127\.0\.0\.1 port"):
        listen("127.0.0.1", taken.getsockname()[1])
    taken.close()


def test_requests_at_the_same_time_are_answered_together(serve, fitted):
    client = serve("ltocf")
    users = fitted("ltocf").dataset.split.train.user_ids.ids.to_list()
    alone = {user: [item for item, _ in client.items(user)] for user in users[:20]}
    calls = []
    work = client.live.short_lists._work

    def count(batch):
        calls.append(len(batch))
        return work(batch)

    client.live.short_lists._work = count

    async def all_at_once():
        targets = [f"/users/{user}/recommendations" for user in users[:20]]
        return await asyncio.gather(*(ask(client.app, "GET", target) for target in targets))

    for reply in asyncio.run(all_at_once()):
        found = reply.json()
        assert [entry["item"] for entry in found["items"]] == alone[found["user"]]
    assert sum(calls) == 20
    assert max(calls) > 1


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
def test_the_word_before_the_token_may_be_written_in_any_case(serve, scheme):
    client = serve("ltocf", rules=Rules(token="secret"))
    assert client.post("/events", EVENT, authorization=f"{scheme} secret").status == 201
    assert client.post("/events", EVENT, authorization="Basic secret").status == 401


def test_head_is_get_without_a_body(serve):
    client = serve("ltocf")
    for target in ("/", "/health", "/items?k=3"):
        head, got = client.request("HEAD", target), client.get(target)
        assert (head.status, head.body) == (200, b"")
        assert head.headers["content-length"] == str(len(got.body))


def test_nobody_is_believed_to_be_somebody_else_unless_told_so(tmp_path, monkeypatch):
    from ltocf.service import server

    made = []
    monkeypatch.setattr(server, "make_app", lambda settings: None)
    monkeypatch.setattr(server._Server, "run", lambda self, sockets: made.append(self.config))
    for proxies in ((), ("10.0.0.1",)):
        server.serve_on(Settings(run=tmp_path, proxies=proxies), None, None)
    assert [config.proxy_headers for config in made] == [False, True]
    assert made[1].forwarded_allow_ips == ["10.0.0.1"]


def test_every_503_says_when_to_come_back(serve, monkeypatch):
    from ltocf.service.problems import Busy

    client = serve("ltocf")

    async def busy(*_):
        raise Busy("too many")

    monkeypatch.setattr(client.live, "commit", busy)
    item = client.get("/items?k=1").json()["items"][0]["item"]
    reply = client.post("/events", {"user": "ann", "item": item})
    assert (reply.status, reply.headers["retry-after"]) == (503, "1")

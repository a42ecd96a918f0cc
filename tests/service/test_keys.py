"""Keys of clients: scopes, rotation, and that no key is on disk."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from ltocf.errors import ConfigError
from ltocf.service.access import keys as keys_module
from ltocf.service.access.guard import Rules
from ltocf.service.access.keys import KeyFile, add_key, read_keys, remove_key, rotate_key
from ltocf.service.access.policy import needed_scope

EVENT = {"user": "ann", "item": "none"}


def bearer(key):
    return {"authorization": f"Bearer {key}"}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "keys.json"


@pytest.mark.parametrize(
    ("method", "target", "scope"),
    [
        ("GET", "/", None),
        ("GET", "/health", None),
        ("GET", "/static/page.js", None),
        ("GET", "/users/ann/recommendations", "read"),
        ("POST", "/recommendations", "read"),
        ("GET", "/metrics", "read"),
        ("POST", "/events", "write"),
        ("DELETE", "/events/k", "write"),
        ("DELETE", "/users/ann", "write"),
        ("PUT", "/items/tea", "write"),
        ("POST", "/impressions", "write"),
        ("POST", "/versions/rollback", "admin"),
        ("POST", "/something/new", "write"),
    ],
)
def test_every_request_needs_the_scope_of_what_it_does(method, target, scope):
    assert needed_scope(method, target) == scope


def test_a_key_may_do_what_its_scopes_say_and_no_more(serve, path):
    reader, writer = add_key(path, "page", ["read"]), add_key(path, "shop", ["write"])
    rules = Rules(read_needs_token=True, keys=KeyFile(path))
    client = serve(rules=rules)
    assert client.get("/items", **bearer(reader)).status == 200
    assert client.get("/items", **bearer(writer)).status == 403
    assert client.get("/items").status == 401
    refused = client.post("/events", EVENT, **bearer(reader))
    assert refused.status == 403 and "lacks the scope write" in refused.json()["detail"]
    assert client.post("/events", EVENT, **bearer(writer)).status in (201, 404)  # was let in
    assert client.post("/versions/rollback", {}, **bearer(writer)).status == 403
    assert client.post("/versions/rollback", {}, **bearer(reader)).status == 403


def test_the_token_may_do_everything_beside_keys(serve, path):
    add_key(path, "page", ["read"])
    client = serve(rules=Rules(token="secret", read_needs_token=True, keys=KeyFile(path)))
    assert client.get("/items", **bearer("secret")).status == 200
    assert client.post("/versions/rollback", {}, **bearer("secret")).status == 409
    assert client.get("/items", **bearer("wrong")).status == 401


def test_no_key_is_on_disk_and_the_file_is_for_its_owner_only(path):
    secret = add_key(path, "page", ["read"])
    text = path.read_text()
    assert secret not in text and secret.removeprefix("ltocf_") not in text
    assert path.stat().st_mode & 0o077 == 0


def test_a_rotated_key_works_until_its_grace_ends(path):
    old = add_key(path, "page", ["read"])
    new = rotate_key(path, "page", grace_seconds=60)
    found = KeyFile(path)
    assert found.find(old).scopes == found.find(new).scopes == ("read",)
    newest = rotate_key(path, "page", grace_seconds=0)
    found = KeyFile(path)
    assert found.find(new) is None and found.find(newest) is not None
    assert found.find(old) is None


def test_a_running_service_follows_the_file(path, monkeypatch):
    key = add_key(path, "page", ["read"])
    found = KeyFile(path)
    assert found.find(key) is not None
    remove_key(path, "page")
    late = time.monotonic() + 5
    monkeypatch.setattr("ltocf.service.access.keys.time.monotonic", lambda: late)
    assert found.find(key) is None


def test_what_is_wrong_with_keys_is_said(path):
    add_key(path, "page", ["read"])
    with pytest.raises(ConfigError, match="already"):
        add_key(path, "page", ["read"])
    with pytest.raises(ConfigError, match="unknown scope 'fly'"):
        add_key(path, "other", ["fly"])
    with pytest.raises(ConfigError, match="no key named 'nobody'"):
        rotate_key(path, "nobody", 1)
    path.write_text("{")
    with pytest.raises(ConfigError, match="cannot be read"):
        read_keys(path)


def test_a_file_of_keys_that_is_not_there_is_an_error_instead_of_a_locked_door(path):
    with pytest.raises(
        ConfigError, match=r"keys\.json: does not exist; make a key with 'ltocf keys"
    ):
        KeyFile(path)


@pytest.mark.parametrize("name", ["", "a\nb", "\x1b[2J", "x" * 65])
def test_a_client_has_a_name_that_a_table_and_a_log_can_hold(path, name):
    with pytest.raises(ConfigError, match="a client's name has 1 to 64 printable characters"):
        add_key(path, name, ["read"])
    assert not path.exists()


def test_keys_that_are_added_at_the_same_time_are_all_kept(path, monkeypatch):
    """Whoever comes while another writes is told so, instead of losing what the other wrote."""
    read, added = keys_module.read_keys, []

    def read_while_another_adds(file):
        found = read(file)
        if not added:
            added.append("now")
            with pytest.raises(ConfigError, match="is being written by"):
                in_a_thread(lambda: add_key(file, "second", ["read"]))
        return found

    monkeypatch.setattr(keys_module, "read_keys", read_while_another_adds)
    add_key(path, "first", ["read"])
    add_key(path, "second", ["read"])
    assert [key.name for key in read(path)] == ["first", "second"]


def in_a_thread(work):
    with ThreadPoolExecutor() as pool:
        return pool.submit(work).result()

"""Large answers are compressed for whoever asks for that."""

import gzip
import json

import pytest


def test_a_long_list_is_compressed_for_whoever_can_read_that(serve):
    client = serve()
    plain = client.get("/users/ann/recommendations?k=80")
    small = client.get("/users/ann/recommendations?k=80", **{"accept-encoding": "br, gzip"})
    assert small.headers["content-encoding"] == "gzip" and "content-encoding" not in plain.headers
    assert json.loads(gzip.decompress(small.body)) == plain.json()
    assert len(small.body) == int(small.headers["content-length"]) < len(plain.body) / 2


@pytest.mark.parametrize("offer", ["gzip;q=1.0,deflate;q=0.6,identity;q=0.3", "br, gzip; q=0.5"])
def test_a_client_that_weighs_its_encodings_gets_a_compressed_answer_too(serve, offer):
    reply = serve().get("/users/ann/recommendations?k=80", **{"accept-encoding": offer})
    assert reply.headers["content-encoding"] == "gzip"


def test_short_answers_and_refused_encodings_stay_as_they_are(serve):
    client = serve()
    assert "content-encoding" not in client.get("/health", **{"accept-encoding": "gzip"}).headers
    target = "/users/ann/recommendations?k=80"
    for refused in ("gzip;q=0", "gzip; q=0.0", "xgzip", ""):
        headers = client.get(target, **{"accept-encoding": refused}).headers
        assert "content-encoding" not in headers

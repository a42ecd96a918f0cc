"""Large answers are compressed for whoever asks for that."""

import gzip
import json


def test_a_long_list_is_compressed_for_whoever_can_read_that(serve):
    client = serve()
    plain = client.get("/users/ann/recommendations?k=80")
    small = client.get("/users/ann/recommendations?k=80", **{"accept-encoding": "br, gzip"})
    assert small.headers["content-encoding"] == "gzip" and "content-encoding" not in plain.headers
    assert json.loads(gzip.decompress(small.body)) == plain.json()
    assert len(small.body) == int(small.headers["content-length"]) < len(plain.body) / 2


def test_short_answers_and_refused_encodings_stay_as_they_are(serve):
    client = serve()
    assert "content-encoding" not in client.get("/health", **{"accept-encoding": "gzip"}).headers
    target = "/users/ann/recommendations?k=80"
    assert "content-encoding" not in client.get(target, **{"accept-encoding": "gzip;q=0"}).headers

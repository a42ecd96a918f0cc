"""What is logged of a request, and what is not."""

import json
import logging

import pytest

from ltocf.service.observing.quantiles import quantile, route_times


@pytest.fixture
def lines(caplog):
    caplog.set_level(logging.INFO, logger="ltocf.requests")
    return lambda: [json.loads(r.message) for r in caplog.records if r.name == "ltocf.requests"]


def test_a_request_is_one_line_without_anything_that_the_client_wrote(serve, lines):
    client = serve()
    client.get("/users/secret-person/recommendations?k=2&exclude=secret-item")
    (line,) = lines()
    assert line["route"] == "/users/{user}/recommendations" and line["method"] == "GET"
    assert line["status"] == 200 and line["model"] == "1" and line["milliseconds"] >= 0
    assert "secret" not in json.dumps(line)


def test_paths_are_logged_when_asked_for(serve, lines):
    serve(log_paths=True).get("/users/ann/recommendations?k=2")
    assert lines()[0]["path"] == "/users/ann/recommendations"


def test_a_refused_request_is_logged_too(serve, lines):
    serve().get("/nothing")
    assert (lines()[0]["route"], lines()[0]["status"]) == ("other", 404)


def test_the_id_of_a_request_comes_back_and_is_in_its_line(serve, lines):
    reply = serve().get("/health", **{"X-Request-Id": "shop-42"})
    assert reply.headers["x-request-id"] == "shop-42" == lines()[0]["request"]


@pytest.mark.parametrize("given", ["", "a b", "x" * 65, 'a"b', "a\nb"])
def test_an_id_that_could_harm_a_log_is_replaced(serve, given):
    reply = serve().get("/health", **{"X-Request-Id": given})
    assert len(reply.headers["x-request-id"]) == 32


def test_a_quantile_is_read_between_two_bounds():
    counts = {0.1: 50.0, 0.2: 100.0, float("inf"): 100.0}
    assert quantile(counts, 0.5) == pytest.approx(0.1)
    assert quantile(counts, 0.75) == pytest.approx(0.15)
    assert quantile({0.1: 0.0, float("inf"): 4.0}, 0.5) == pytest.approx(0.1)
    assert quantile({0.1: 0.0, float("inf"): 0.0}, 0.5) is None


def test_operations_tell_the_times_of_each_route(serve):
    client = serve()
    for _ in range(3):
        client.get("/items?k=1")
    found = {
        line.route: line for line in route_times(client.app.state.telemetry.registry.collect())
    }
    assert found["/items"].answered == 3 and found["/items"].failed == 0
    assert 0 < found["/items"].p50_milliseconds <= found["/items"].p99_milliseconds
    shown = client.get("/operations").json()
    assert {line["route"] for line in shown["routes"]} >= {"/items"}


def test_a_span_is_named_by_its_route_and_is_a_child_of_the_callers(serve):
    pytest.importorskip("opentelemetry.sdk")
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    from ltocf.service.observing.tracing import Tracer

    kept, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(kept))
    trace = "0af7651916cd43dd8448eb211c80319c"
    client = serve(tracer=Tracer(provider))
    client.get("/users/ann/recommendations?k=1", traceparent=f"00-{trace}-b7ad6b7169203331-01")
    (span,) = kept.get_finished_spans()
    assert span.name == "GET /users/{user}/recommendations"
    assert f"{span.context.trace_id:032x}" == trace
    assert span.attributes["http.response.status_code"] == 200
    assert not any("ann" in str(value) for value in span.attributes.values())

"""OpenTelemetry spans, with the extra `otel`: where they go is set by its own OTEL_* variables."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from starlette.types import Scope

from ltocf.errors import ConfigError


class Tracer:
    """A span for each request, a child of the caller's if they sent `traceparent`."""

    def __init__(self, provider: Any = None) -> None:
        """`provider` is for tests; by default one that exports over OTLP."""
        try:
            from opentelemetry import propagate, trace
        except ModuleNotFoundError as missing:
            raise ConfigError(
                f"tracing needs {missing.name}: install it with pip install 'ltocf[otel]'"
            ) from None
        self._trace, self._propagate = trace, propagate
        self._provider = _exporting() if provider is None else provider
        self._tracer = self._provider.get_tracer("ltocf")

    @contextmanager
    def request(self, scope: Scope) -> Iterator[Any]:
        carrier = {
            name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]
        }
        parent = self._propagate.extract(carrier)
        kind = self._trace.SpanKind.SERVER
        with self._tracer.start_as_current_span("request", context=parent, kind=kind) as span:
            yield span

    def finish(self, span: Any, method: str, route: str, status: int, id_: str) -> None:
        """Name the span by its route, since paths contain ids."""
        span.update_name(f"{method} {route}")
        span.set_attribute("http.request.method", method)
        span.set_attribute("http.route", route)
        span.set_attribute("http.response.status_code", status)
        span.set_attribute("ltocf.request_id", id_)
        if status >= 500:
            span.set_status(self._trace.StatusCode.ERROR)

    def close(self) -> None:
        """Send the spans that are waiting."""
        self._provider.shutdown()


def _exporting() -> Any:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    provider = TracerProvider(resource=Resource.create({"service.name": "ltocf"}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return provider

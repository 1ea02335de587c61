"""Traces: every span as OpenTelemetry knows it, below the request it belongs to, also one that began elsewhere."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from opentelemetry import context, trace
from opentelemetry.trace import SpanKind, Status, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from bythebook.errors import BookError, ConfigurationError
from bythebook.telemetry import CONTENT, masked, request_id
from bythebook.telemetry.redaction import masked_all

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from opentelemetry.trace import TracerProvider

    from bythebook.telemetry import Ended

TRACEPARENT = "traceparent"
_KINDS = {"request": SpanKind.SERVER, "call": SpanKind.CLIENT}


class Traces:
    """Tells a tracer provider. Content never becomes part of a trace, whatever is logged."""

    def __init__(self, provider: TracerProvider) -> None:
        self._tracer = provider.get_tracer("bythebook")

    def began(self, name: str, attributes: Mapping[str, Any], /) -> Ended:
        before = context.get_current()
        parent = before
        if arrived := attributes.get(TRACEPARENT):
            parent = TraceContextTextMapPropagator().extract({TRACEPARENT: arrived}, context=before)
        span = self._tracer.start_span(name, parent, _KINDS.get(name, SpanKind.INTERNAL), dict(_told(attributes)))
        within = trace.set_span_in_context(span, parent)
        context.attach(within)

        def ended(error: BaseException | None) -> None:
            if isinstance(error, Exception):
                span.set_status(Status(StatusCode.ERROR, error_name(error)))
                span.set_attribute("error.type", error_name(error))
            span.end()
            # A generator may be closed by another task than it was begun by. What stands there is left alone.
            if context.get_current() is within:
                context.attach(before)

        return ended

    def counted(self, _name: str, _value: float, _labels: Mapping[str, str], /) -> None:
        """Figures are not part of a trace."""

    def happened(self, event: str, fields: Mapping[str, Any], /) -> None:
        """Beside an event in the current span, or more about that span where they have the same name."""
        span = trace.get_current_span()
        if getattr(span, "name", None) == event:
            span.set_attributes(dict(_told(fields)))
        else:
            span.add_event(event, dict(_told(fields)))


def current_trace() -> str:
    """The id of the trace this code runs in; empty outside of any."""
    told = trace.get_current_span().get_span_context()
    return f"{told.trace_id:032x}" if told.is_valid else ""


@contextmanager
def exporting() -> Iterator[TracerProvider]:
    """Whoever was set up to take traces, or else an exporter to where the OTEL_ variables point.

    What has not been sent yet is sent at the end.
    """
    if not isinstance(given := trace.get_tracer_provider(), trace.ProxyTracerProvider):
        yield given
        return
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import OTELResourceDetector, Resource
        from opentelemetry.sdk.trace import TracerProvider as Exporting
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ModuleNotFoundError as exc:
        raise ConfigurationError("traces need an exporter. Run: pip install 'bythebook[traces]'.") from exc
    # OTEL_SERVICE_NAME wins over our name.
    provider = Exporting(resource=Resource({"service.name": "bythebook"}).merge(OTELResourceDetector().detect()))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    try:
        yield provider
    finally:
        provider.shutdown()


def error_name(error: BaseException) -> str:
    """What kind of error it is. Its message may quote anything and is no part of a trace."""
    return error.code if isinstance(error, BookError) else type(error).__name__


def _told(fields: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    if identity := request_id.get():
        yield "request_id", identity
    for name, value in fields.items():
        if name not in CONTENT and name not in (TRACEPARENT, "message", "frames") and value is not None:
            yield name, masked_all(value, masked)

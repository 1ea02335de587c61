"""OpenTelemetry traces: every span below the span of its request, which may continue a trace of the client."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from opentelemetry import context, trace
from opentelemetry.trace import SpanKind, Status, StatusCode, TracerProvider
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from bythebook.errors import BookError, ConfigurationError
from bythebook.telemetry import CONTENT_FIELDS, OnSpanEnd, TelemetryListener, redact, request_id
from bythebook.telemetry.redaction import redact_all

TRACEPARENT = "traceparent"
_KINDS = {"request": SpanKind.SERVER, "call": SpanKind.CLIENT}


class TracingListener(TelemetryListener):
    """Sends spans to a tracer provider. Content is never part of a trace, even if it is logged; nor are metrics."""

    def __init__(self, provider: TracerProvider) -> None:
        self._tracer = provider.get_tracer("bythebook")

    def on_span_start(self, name: str, attributes: Mapping[str, Any], /) -> OnSpanEnd:
        previous = parent = context.get_current()
        if traceparent := attributes.get(TRACEPARENT):
            parent = TraceContextTextMapPropagator().extract({TRACEPARENT: traceparent}, context=previous)
        span = self._tracer.start_span(
            name, parent, _KINDS.get(name, SpanKind.INTERNAL), dict(_to_attributes(attributes))
        )
        current = trace.set_span_in_context(span, parent)
        context.attach(current)

        def end(error: BaseException | None) -> None:
            if isinstance(error, Exception):
                span.set_status(Status(StatusCode.ERROR, error_type(error)))
                span.set_attribute("error.type", error_type(error))
            span.end()
            # A generator may be closed in another task, whose context must not change.
            if context.get_current() is current:
                context.attach(previous)

        return end

    def on_log_event(self, event: str, fields: Mapping[str, Any], /) -> None:
        """Add an event to the current span, or attributes if the span has the same name."""
        span = trace.get_current_span()
        if getattr(span, "name", None) == event:
            span.set_attributes(dict(_to_attributes(fields)))
        else:
            span.add_event(event, dict(_to_attributes(fields)))


def current_trace_id() -> str:
    """The id of the current trace; empty outside of a trace."""
    current = trace.get_current_span().get_span_context()
    return f"{current.trace_id:032x}" if current.is_valid else ""


@contextmanager
def open_tracer_provider() -> Iterator[TracerProvider]:
    """The tracer provider of the process if one is set, else an OTLP exporter configured by the OTEL_ variables.

    The exporter is flushed at the end of the block.
    """
    if not isinstance(configured := trace.get_tracer_provider(), trace.ProxyTracerProvider):
        yield configured
        return
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import OTELResourceDetector, Resource
        from opentelemetry.sdk.trace import TracerProvider as SdkTracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ModuleNotFoundError as exc:
        raise ConfigurationError("traces need an exporter. Run: pip install 'bythebook[traces]'.") from exc
    # OTEL_SERVICE_NAME takes precedence over this name.
    provider = SdkTracerProvider(
        resource=Resource({"service.name": "bythebook"}).merge(OTELResourceDetector().detect())
    )
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    try:
        yield provider
    finally:
        provider.shutdown()


def error_type(error: BaseException) -> str:
    """The type of the error. Its message may quote content and is not traced."""
    return error.code if isinstance(error, BookError) else type(error).__name__


def _to_attributes(fields: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    if current_request := request_id.get():
        yield "request_id", current_request
    for name, value in fields.items():
        if name not in CONTENT_FIELDS and name not in (TRACEPARENT, "message", "frames") and value is not None:
            yield name, redact_all(value, redact)

"""Traces: spans in their places, without content, also across tasks."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator, Iterator
from typing import Any

import pytest
from opentelemetry import context, trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from bythebook.errors import ConfigurationError, NotFound
from bythebook.telemetry import install_listeners, log, request_id, span
from bythebook.telemetry.tracing import TracingListener, current_trace_id, open_tracer_provider

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


@pytest.fixture
def spans() -> Iterator[InMemorySpanExporter]:
    """Every span that has ended while the test listens."""
    provider, kept = TracerProvider(), InMemorySpanExporter()
    provider.add_span_processor(SimpleSpanProcessor(kept))
    with install_listeners(TracingListener(provider)):
        yield kept
    provider.shutdown()


def _by_name(kept: InMemorySpanExporter) -> dict[str, ReadableSpan]:
    return {found.name: found for found in kept.get_finished_spans()}


def _attributes(found: Any) -> dict[str, Any]:
    return dict(found.attributes or {})


def test_continues_the_trace_of_the_client(spans: InMemorySpanExporter) -> None:
    with span("request", method="POST", traceparent=f"00-{TRACE}-{PARENT}-01"):
        assert current_trace_id() == TRACE
        with span("question"):
            pass
    assert current_trace_id() == ""
    found = _by_name(spans)
    request, question = found["request"], found["question"]
    assert request.parent
    assert (f"{request.context.trace_id:032x}", f"{request.parent.span_id:016x}") == (TRACE, PARENT)
    assert question.parent == request.context
    assert _attributes(request) == {"method": "POST"}
    assert (request.kind, question.kind) == (trace.SpanKind.SERVER, trace.SpanKind.INTERNAL)


@pytest.mark.parametrize("traceparent", ["", "nonsense", f"00-{'0' * 32}-{PARENT}-01", "x" * 10_000])
def test_an_invalid_traceparent_starts_a_new_trace(spans: InMemorySpanExporter, traceparent: str) -> None:
    with span("request", traceparent=traceparent):
        assert current_trace_id()
    assert _by_name(spans)["request"].parent is None


def test_log_events_become_span_events_or_attributes_of_the_span_with_their_name(spans: InMemorySpanExporter) -> None:
    identity = request_id.set("request-1")
    with span("question"):
        with span("call", upstream="models.example"):
            log("call_retrying", upstream="models.example", attempt=1, message="who knows")
        log("question", outcome="answered", question="a secret wish", answer="a page", tokens=0, model=None)
    request_id.reset(identity)
    found = _by_name(spans)
    assert _attributes(found["question"]) == {"request_id": "request-1", "outcome": "answered", "tokens": 0}
    (event,) = found["call"].events
    assert event.name == "call_retrying"
    assert _attributes(event) == {"request_id": "request-1", "upstream": "models.example", "attempt": 1}


def test_a_span_has_the_type_of_its_error_without_the_message(spans: InMemorySpanExporter) -> None:
    for name, error in (("searching", NotFound("page text")), ("proving", ValueError("page text"))):
        with pytest.raises(type(error)), span(name):
            raise error
    found = _by_name(spans)
    assert [found[name].status.description for name in ("searching", "proving")] == ["not_found", "ValueError"]
    assert "page text" not in "".join(span.to_json() for span in found.values())


async def test_closing_a_generator_in_another_task_keeps_the_context_of_that_task(
    spans: InMemorySpanExporter, caplog: pytest.LogCaptureFixture
) -> None:
    async def words() -> AsyncGenerator[str]:
        with span("generating"):
            yield "one"
            yield "two"

    said = words()
    await asyncio.create_task(anext(said))
    with span("question"):
        before = context.get_current()
        await said.aclose()
        assert context.get_current() is before
    assert set(_by_name(spans)) == {"generating", "question"}
    assert not caplog.records


def test_without_an_exporter_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    with pytest.raises(ConfigurationError, match=r"pip install 'bythebook\[traces\]'"), open_tracer_provider():
        pass

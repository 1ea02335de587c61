"""Telemetry of requests: ids, the request log, metrics and traces, without secrets (S9)."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from bythebook import Book, telemetry
from bythebook.embeddings import Embedder
from bythebook.errors import Unavailable
from bythebook.retrieval.retriever import Retriever
from bythebook.server.serve import configure_telemetry
from bythebook.settings import Settings
from bythebook.telemetry import install_listeners, request_id
from bythebook.telemetry.prometheus import PrometheusListener
from bythebook.telemetry.redaction import register_secrets
from bythebook.telemetry.tracing import TracingListener
from bythebook.testing import Fault, ScriptedReply, ScriptedUsage
from tests.support.server import ServeBook, ServedBook, ask_for_events
from tests.support.telemetry import CapturedLog, capture_log, no_listeners

QUESTION = "How often does the fog horn sound?"
PAGE = "two blasts of three seconds"

KEY = "canary-key-5d1f"
OTHER_KEY = "canary-groq-77aa"
PASSWORD = "canary-w0rd"  # noqa: S105 - a made up one
SENT = "canary-header-93b2"
CANARIES = (KEY, OTHER_KEY, PASSWORD, SENT, "canary-parameter", PAGE)
PATIENT = {"retrieval_mode": "prefetch", "first_token_seconds": 60, "answer_seconds": 120}
"""However slow the machine is, a question gets its answer."""
SECRETS = {
    "openai_api_key": KEY,
    "groq_api_key": OTHER_KEY,
    "site_url": f"https://me:{PASSWORD}@book.example/",
}


@dataclass(frozen=True, slots=True)
class Watched:
    """A server with its log, metrics and spans."""

    served: ServedBook
    log: CapturedLog
    metrics: PrometheusListener
    spans: InMemorySpanExporter

    async def ask(self, **headers: str) -> Any:
        sent = {"accept-encoding": "identity"} | {name.replace("_", "-"): value for name, value in headers.items()}
        return await self.served.client.post("/v1/ask", json={"query": QUESTION}, headers=sent)

    def all_telemetry(self) -> str:
        spans = "".join(found.to_json() for found in self.spans.get_finished_spans())
        return self.log.text + spans + self.metrics.render()[0].decode()

    def samples(self) -> dict[str, float]:
        lines = [line for line in self.metrics.render()[0].decode().splitlines() if not line.startswith("#")]
        return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


@pytest.fixture(autouse=True)
def without_listeners() -> Iterator[None]:
    with no_listeners():
        yield


@pytest.fixture
async def watched(served: ServeBook) -> AsyncIterator[Watched]:
    """The small book with a model and with secrets in its settings, with all kinds of telemetry."""
    provider, spans, metrics = TracerProvider(), InMemorySpanExporter(), PrometheusListener()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    script = [ScriptedReply(f"The horn gives {PAGE} every ninety seconds. [1]", usage=ScriptedUsage(300, 20))]
    with capture_log() as log_output, install_listeners(metrics, TracingListener(provider)):
        async with served(script, **PATIENT, **SECRETS) as book:
            register_secrets(book.settings.secrets())
            yield Watched(book, log_output, metrics, spans)
            telemetry.set_redaction(str)
    provider.shutdown()


async def test_one_question_is_one_log_line_one_trace_and_one_value_of_each_metric(watched: Watched) -> None:
    trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    response = await watched.ask(x_request_id="reader.request_1", traceparent=f"00-{trace}-00f067aa0ba902b7-01")
    assert (response.status_code, response.headers["x-request-id"]) == (200, "reader.request_1")
    (line,) = watched.log.find_events("request")
    assert (line["method"], line["route"], line["status"]) == ("POST", "/v1/ask", 200)
    assert line["bytes"] == len(response.content)
    assert {line["request_id"] for line in watched.log.lines if "state" in line} == {"reader.request_1"}
    spans = {found.name: found for found in watched.spans.get_finished_spans()}
    assert {"request", "question", "embedding", "searching", "generating", "call", "proving"} <= set(spans)
    assert {f"{found.context.trace_id:032x}" for found in spans.values()} == {trace}
    assert spans["question"].parent == spans["request"].context
    assert (spans["request"].attributes or {})["status"] == 200
    samples = watched.samples()
    expected = {
        'bythebook_requests_total{method="POST",route="/v1/ask",status="200"}': 1,
        'bythebook_questions_total{outcome="answered"}': 1,
        'bythebook_tokens_total{kind="prompt"}': 300,
        'bythebook_tokens_total{kind="completion"}': 20,
        'bythebook_stage_seconds_count{stage="proving"}': 1,
        "bythebook_first_token_seconds_count": 1,
        "bythebook_active_requests": 0,
        "bythebook_index_generation": 1,
    }
    assert {name: samples.get(name) for name in expected} == expected
    calls = {re.sub(r'upstream="[^"]*"', "", name): value for name, value in samples.items() if "calls_total" in name}
    assert calls['bythebook_calls_total{state="succeeded",}'] == 1


async def test_an_invalid_request_id_is_replaced(watched: Watched) -> None:
    for given in ("", "short", "x" * 65, "with space in it", "<script>alert(1)</script>", KEY):
        response = await watched.served.client.get("/health/live", headers={"x-request-id": given})
        assert re.fullmatch(r"[0-9a-f]{32}", response.headers["x-request-id"]), given


async def test_every_response_has_a_request_id_and_errors_repeat_it(watched: Watched) -> None:
    client = watched.served.client
    failed = [
        await client.get("/no/such/address"),
        await client.get("/v1/ask"),
        await client.post("/v1/ask", content=b"{"),
        await client.post("/v1/ask", json={"query": ""}),
        await client.post("/v1/ask", content=b"x" * 1_000_001),
    ]
    assert [response.status_code for response in failed] == [404, 405, 400, 400, 413]
    assert [response.json()["request_id"] for response in failed] == [r.headers["x-request-id"] for r in failed]
    logged = [(line["route"], line["status"]) for line in watched.log.find_events("request")]
    assert sorted(logged, key=str) == sorted(
        [("other", 404), ("/v1/ask", 405), ("/v1/ask", 400), ("/v1/ask", 400), ("/v1/ask", 413)], key=str
    )
    assert request_id.get() == ""


async def test_probes_are_counted_and_not_logged(watched: Watched) -> None:
    client = watched.served.client
    samples = await client.get("/metrics")
    assert samples.headers["content-type"].startswith("text/plain")
    assert "bythebook_index_generation 1.0" in samples.text
    await client.get("/health/live")
    assert watched.log.find_events("request") == []
    assert watched.samples()['bythebook_requests_total{method="GET",route="/metrics",status="200"}'] == 1


async def test_rejected_requests_are_counted(watched: Watched) -> None:
    watched.served.app.state.context.admission.capacity = 0
    assert (await watched.ask()).status_code == 503
    assert watched.samples()['bythebook_rejected_requests_total{reason="full"}'] == 1


async def test_metrics_are_not_found_unless_collected(served: ServeBook) -> None:
    async with served() as book:
        response = await book.client.get("/metrics")
    assert (response.status_code, response.json()["error"]) == (404, "not_found")


class Failing:
    """An embedder whose error contains secrets."""

    def __init__(self, error: Exception, real: Embedder) -> None:
        self.identity = real.identity
        self._error = error

    def count_tokens(self, text: str) -> int:
        return len(text.split())

    async def embed_query(self, _text: str) -> Any:
        raise self._error


def _fail(book: Book, error: Exception) -> None:
    embedder: Any = Failing(error, book.embedder)
    book.retriever = Retriever(embedder)
    book.__dict__.pop("_pipeline")  # built once, with the retriever of its first question


LEAKY_MESSAGE = f"login with {KEY}, {OTHER_KEY} and {PASSWORD} at https://me:{PASSWORD}@book.example/"


@pytest.mark.parametrize(
    ("error", "status"),
    [
        pytest.param(Unavailable(LEAKY_MESSAGE), 503, id="a book error"),
        pytest.param(RuntimeError(f"{LEAKY_MESSAGE} while reading {PAGE!r}"), 500, id="an unexpected error"),
    ],
)
async def test_no_failure_reveals_secrets_or_content(watched: Watched, error: Exception, status: int) -> None:
    """S9: canaries in the settings, in headers, on the page and in errors."""
    sent = {"authorization": f"Bearer {SENT}", "cookie": f"session={SENT}", "x_api_key": SENT, "user_agent": SENT}
    assert (await watched.ask(**sent)).status_code == 200
    await watched.served.client.get(f"/no/{SENT}?key=canary-parameter", headers={"x-request-id": KEY})
    _fail(watched.served.book, error)
    failed = await watched.ask(**sent)
    stream = await ask_for_events(watched.served, {"query": QUESTION}, authorization=f"Bearer {SENT}")
    pages = [await watched.served.client.get(path) for path in ("/", "/widget.js", "/docs", "/openapi.json")]
    assert (failed.status_code, stream[-1].name) == (status, "error")
    received = watched.all_telemetry()
    assert [canary for canary in CANARIES if canary in received] == []
    said = failed.text + str([event.data for event in stream]) + str(failed.headers)
    assert [canary for canary in CANARIES if canary in said] == []
    # The examples of the reference are from the same page, and no secret.
    shown = "".join(page.text for page in pages)
    assert [canary for canary in CANARIES if canary in shown and canary != PAGE] == []
    assert len(watched.log.find_events("question_failed")) == 2


async def test_a_key_quoted_in_a_provider_error_is_redacted(served: ServeBook) -> None:
    with capture_log() as log_output:
        async with served(ScriptedReply(KEY, fault=Fault.SERVER_ERROR), api_key=KEY, **PATIENT) as book:
            response = await book.client.post("/v1/ask", json={"query": QUESTION})
    assert response.status_code == 502
    assert KEY not in log_output.text + response.text
    assert {"call_retrying", "call_failed", "question_failed"} <= {line["event"] for line in log_output.lines}


def test_telemetry_follows_the_settings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = Settings.load({"log_format": "text", "log_level": "warning", "api_key": KEY}, folder=tmp_path)
    with configure_telemetry(settings):
        telemetry.log("index_opened", generation="g000001")
        telemetry.log("circuit_breaker_changed", upstream=KEY, state="open")
    telemetry.set_redaction(str)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.partition(" ")[2] == "warning circuit_breaker_changed upstream=******** state=open"
    assert telemetry.active_listeners() == ()

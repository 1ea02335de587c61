"""Requests as they are observed: ids, the access log, figures, traces; and no secret in any of them (S9)."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
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
from bythebook.server.telemetry import observing
from bythebook.settings import Settings
from bythebook.telemetry import listening, request_id
from bythebook.telemetry.prometheus import Metrics
from bythebook.telemetry.redaction import hide
from bythebook.telemetry.tracing import Traces
from bythebook.testing import Fault, Reply, Usage
from tests.support.server import Served, Serving, heard
from tests.support.telemetry import Written, writing

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
    """A server, and everything it tells."""

    served: Served
    log: Written
    metrics: Metrics
    spans: InMemorySpanExporter

    async def ask(self, **headers: str) -> Any:
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        return await self.served.client.post("/v1/ask", json={"query": QUESTION}, headers=sent)

    def everything(self) -> str:
        spans = "".join(found.to_json() for found in self.spans.get_finished_spans())
        return self.log.text + spans + self.metrics.render()[0].decode()

    def figures(self) -> dict[str, float]:
        lines = [line for line in self.metrics.render()[0].decode().splitlines() if not line.startswith("#")]
        return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


@pytest.fixture
async def watched(served: Serving) -> AsyncIterator[Watched]:
    """The small book behind a model, with secrets in its settings, watched in every way at once."""
    provider, spans, metrics = TracerProvider(), InMemorySpanExporter(), Metrics()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    script = [Reply(f"The horn gives {PAGE} every ninety seconds. [1]", usage=Usage(300, 20))]
    with writing() as written, listening(metrics, Traces(provider)):
        async with served(script, **PATIENT, **SECRETS) as book:
            hide(book.settings.secrets())
            yield Watched(book, written, metrics, spans)
            telemetry.hide(str)
    provider.shutdown()


async def test_one_question_is_one_line_one_trace_and_one_of_each_figure(watched: Watched) -> None:
    trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    response = await watched.ask(x_request_id="reader.request_1", traceparent=f"00-{trace}-00f067aa0ba902b7-01")
    assert (response.status_code, response.headers["x-request-id"]) == (200, "reader.request_1")
    (line,) = watched.log.told("request")
    assert (line["method"], line["route"], line["status"]) == ("POST", "/v1/ask", 200)
    assert line["bytes"] == len(response.content)
    assert {line["request_id"] for line in watched.log.lines if "state" in line} == {"reader.request_1"}
    spans = {found.name: found for found in watched.spans.get_finished_spans()}
    assert {"request", "question", "embedding", "searching", "generating", "call", "proving"} <= set(spans)
    assert {f"{found.context.trace_id:032x}" for found in spans.values()} == {trace}
    assert spans["question"].parent == spans["request"].context
    assert (spans["request"].attributes or {})["status"] == 200
    figures = watched.figures()
    expected = {
        'bythebook_requests_total{method="POST",route="/v1/ask",status="200"}': 1,
        'bythebook_questions_total{outcome="answered"}': 1,
        'bythebook_tokens_total{kind="prompt"}': 300,
        'bythebook_tokens_total{kind="completion"}': 20,
        'bythebook_stage_seconds_count{stage="proving"}': 1,
        "bythebook_first_token_seconds_count": 1,
        "bythebook_readers": 0,
        "bythebook_index_generation": 1,
    }
    assert {name: figures.get(name) for name in expected} == expected
    calls = {re.sub(r'upstream="[^"]*"', "", name): value for name, value in figures.items() if "calls_total" in name}
    assert calls['bythebook_calls_total{state="succeeded",}'] == 1


async def test_an_id_that_cannot_be_one_is_replaced(watched: Watched) -> None:
    for given in ("", "short", "x" * 65, "with space in it", "<script>alert(1)</script>", KEY):
        response = await watched.served.client.get("/health/live", headers={"x-request-id": given})
        assert re.fullmatch(r"[0-9a-f]{32}", response.headers["x-request-id"]), given


async def test_every_response_has_an_id_and_every_failure_the_same_one(watched: Watched) -> None:
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
    logged = [(line["route"], line["status"]) for line in watched.log.told("request")]
    assert sorted(logged, key=str) == sorted(
        [("other", 404), ("/v1/ask", 405), ("/v1/ask", 400), ("/v1/ask", 400), ("/v1/ask", 413)], key=str
    )
    assert request_id.get() == ""


async def test_machines_that_look_in_are_counted_and_not_logged(watched: Watched) -> None:
    client = watched.served.client
    figures = await client.get("/metrics")
    assert figures.headers["content-type"].startswith("text/plain")
    assert "bythebook_index_generation 1.0" in figures.text
    await client.get("/health/live")
    assert watched.log.told("request") == []
    assert watched.figures()['bythebook_requests_total{method="GET",route="/metrics",status="200"}'] == 1


async def test_who_is_turned_away_is_counted(watched: Watched) -> None:
    desk = watched.served.app.state.door.desk
    desk.places = 0
    assert (await watched.ask()).status_code == 503
    assert watched.figures()['bythebook_shed_total{reason="full"}'] == 1


async def test_without_figures_there_is_nothing_at_their_address(served: Serving) -> None:
    async with served() as book:
        response = await book.client.get("/metrics")
    assert (response.status_code, response.json()["error"]) == (404, "not_found")


class Failing:
    """An embedder that says everything it knows when it fails."""

    def __init__(self, error: Exception, real: Embedder) -> None:
        self.identity = real.identity
        self._error = error

    def count(self, text: str) -> int:
        return len(text.split())

    async def query(self, _text: str) -> Any:
        raise self._error


def _fail(book: Book, error: Exception) -> None:
    embedder: Any = Failing(error, book.embedder)
    book.retriever = Retriever(embedder)


SPOKEN = f"login with {KEY}, {OTHER_KEY} and {PASSWORD} at https://me:{PASSWORD}@book.example/"


@pytest.mark.parametrize(
    ("error", "status"),
    [
        pytest.param(Unavailable(SPOKEN), 503, id="an error of ours"),
        pytest.param(RuntimeError(f"{SPOKEN} while reading {PAGE!r}"), 500, id="an error nobody expected"),
    ],
)
async def test_no_secret_and_no_page_is_told_whatever_fails(watched: Watched, error: Exception, status: int) -> None:
    """S9: canaries in the settings, in headers, on the page and in errors."""
    sent = {"authorization": f"Bearer {SENT}", "cookie": f"session={SENT}", "x_api_key": SENT, "user_agent": SENT}
    assert (await watched.ask(**sent)).status_code == 200
    await watched.served.client.get(f"/no/{SENT}?key=canary-parameter", headers={"x-request-id": KEY})
    _fail(watched.served.book, error)
    failed = await watched.ask(**sent)
    stream = await heard(watched.served, {"query": QUESTION}, authorization=f"Bearer {SENT}")
    pages = [await watched.served.client.get(path) for path in ("/", "/widget.js", "/docs", "/openapi.json")]
    assert (failed.status_code, stream[-1].name) == (status, "error")
    told = watched.everything()
    assert [canary for canary in CANARIES if canary in told] == []
    said = failed.text + str([event.data for event in stream]) + str(failed.headers)
    assert [canary for canary in CANARIES if canary in said] == []
    # The examples of the reference are from the same page, and no secret.
    shown = "".join(page.text for page in pages)
    assert [canary for canary in CANARIES if canary in shown and canary != PAGE] == []
    assert len(watched.log.told("question_failed")) == 2


async def test_a_provider_that_quotes_a_key_in_its_error_is_not_quoted(served: Serving) -> None:
    with writing() as written:
        async with served(Reply(KEY, fault=Fault.SERVER_ERROR), api_key=KEY, **PATIENT) as book:
            response = await book.client.post("/v1/ask", json={"query": QUESTION})
    assert response.status_code == 502
    assert KEY not in written.text + response.text
    assert {"call_retrying", "call_failed", "question_failed"} <= {line["event"] for line in written.lines}


def test_a_server_is_observed_as_its_settings_say(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = Settings.load({"log_format": "text", "log_level": "warning", "api_key": KEY}, folder=tmp_path)
    with observing(settings):
        telemetry.log("opened", generation="g000001")
        telemetry.log("breaker", upstream=KEY, state="open")
    telemetry.hide(str)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.partition(" ")[2] == "warning breaker upstream=******** state=open"
    assert telemetry.listeners() == ()

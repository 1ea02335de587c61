"""Invalid bodies (S8): each gets an ErrorResponse, none an unhandled error, and no input is echoed."""

from __future__ import annotations

import asyncio
import json
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from bythebook.errors import BookError
from bythebook.server.schemas import ErrorResponse
from tests.support.server import ServedBook

pytestmark = pytest.mark.asyncio(loop_scope="session")

CANARY = "canary-7f3a9c-not-to-be-repeated"
JSON = {"content-type": "application/json"}
DEEP = 100_000
ROUTES = ("/v1/ask", "/v1/search", "/v1/feedback", "/v1/chat/completions", "/v1/sessions")


def parse_error(text: str) -> ErrorResponse:
    """The error in a response, in our shape or in the one for clients of OpenAI."""
    said = json.loads(text)
    if isinstance(said["error"], dict):
        inner = said["error"]
        assert {"type", "param"} <= inner.keys()
        kept = {name: value for name, value in inner.items() if name not in ("type", "param", "code")}
        said = kept | {"error": inner["code"]}
    return ErrorResponse.model_validate(said)


BODIES = {
    "nothing": b"",
    "no JSON": CANARY.encode(),
    "a list": json.dumps([CANARY]).encode(),
    "a text": json.dumps(CANARY).encode(),
    "a number": b"1",
    "null": b"null",
    "half of it": b'{"query": "' + CANARY.encode(),
    "a lone surrogate": b'{"query": "' + CANARY.encode() + b' \\ud800"}',
    "a surrogate as bytes": b'{"query": "' + CANARY.encode() + b' \xed\xa0\x80"}',
    "bad UTF-8": b'{"query": "' + CANARY.encode() + b' \xff"}',
    "another encoding": json.dumps({"query": CANARY}).encode("utf-16"),
    "NaN": b'{"query": "' + CANARY.encode() + b'", "top_k": NaN}',
    "infinity": b'{"query": "' + CANARY.encode() + b'", "top_k": -Infinity}',
    "1e400": b'{"query": "' + CANARY.encode() + b'", "top_k": 1e400}',
    "a number without end": b'{"query": "' + CANARY.encode() + b'", "top_k": ' + b"9" * 10_000 + b"}",
    "too much": json.dumps({"query": CANARY, "top_k": 21}).encode(),
    "half a number": json.dumps({"query": CANARY, "top_k": 2.5}).encode(),
    "a truth for a number": json.dumps({"query": CANARY, "top_k": True}).encode(),
    "a text for a number": json.dumps({"query": CANARY, "top_k": "3"}).encode(),
    "deep lists": b"[" * DEEP + b"]" * DEEP,
    "deep objects": b'{"a":' * DEEP + b"1" + b"}" * DEEP,
    "an unknown field": json.dumps({"query": "horn", CANARY: CANARY}).encode(),
    "a field twice": b'{"query": "x", "query": 7}',
    "too long": json.dumps({"query": CANARY * 1000}).encode(),
    "only blanks": b'{"query": "   "}',
    "an unknown mode": json.dumps({"query": "horn", "selection_mode": CANARY}).encode(),
    "filters that are none": json.dumps({"query": "horn", "filters": {"module": [CANARY]}}).encode(),
}


@pytest.mark.parametrize("path", ROUTES)
async def test_an_invalid_body_is_rejected_without_echoing_it(house: ServedBook, path: str) -> None:
    for name, body in BODIES.items():
        response = await house.client.post(path, content=body, headers=JSON)
        if path == "/v1/sessions" and not body.strip(b"null"):
            assert response.status_code == 201
            continue
        said = parse_error(response.text)
        assert (response.status_code, said.status_code, said.error) == (400, 400, "invalid_input"), name
        assert CANARY not in response.text, name
        assert said.request_id == response.headers["x-request-id"]


@pytest.mark.parametrize(
    ("body", "place"),
    [
        pytest.param({"query": ""}, "query: ", id="a field"),
        pytest.param({"query": "horn", "filters": {"module": 1}}, "filters.module: ", id="a field of a field"),
    ],
)
async def test_a_validation_error_names_the_field(house: ServedBook, body: dict[str, Any], place: str) -> None:
    response = await house.client.post("/v1/ask", json=body)
    assert response.status_code == 400
    assert parse_error(response.text).message.startswith(place)


@pytest.mark.parametrize("kind", ["", "text/plain", "application/x-www-form-urlencoded", "application/xml", "💥"])
async def test_rejects_other_content_types(house: ServedBook, kind: str) -> None:
    headers = {b"content-type": kind.encode()}
    response = await house.client.post("/v1/ask", content=b'{"query": "horn"}', headers=headers)
    assert (response.status_code, parse_error(response.text).error) == (400, "invalid_input")
    assert "Content-Type" in parse_error(response.text).message


@pytest.mark.parametrize("body", [{"query": "horn\0"}, {"query": "horn", "selected_text": "\0"}, {"query": "\u202e"}])
async def test_unusual_characters_are_answered_or_rejected(house: ServedBook, body: dict[str, Any]) -> None:
    for path in ("/v1/ask", "/v1/search"):
        response = await house.client.post(path, json=body if path == "/v1/ask" else {"query": body["query"]})
        assert response.status_code in (200, 400)
    session = (await house.client.post("/v1/sessions")).json()["id"]
    kept = await house.client.post("/v1/ask", json=body | {"session_id": session})
    assert kept.status_code in (200, 400)


async def test_a_body_over_the_limit_is_rejected_before_it_is_read(house: ServedBook) -> None:
    address = house.url.removeprefix("http://")
    reader, writer = await asyncio.open_connection(*address.split(":"))
    writer.write(f"POST /v1/ask HTTP/1.1\r\nHost: {address}\r\nContent-Length: 100000000\r\n\r\n".encode())
    head = await reader.readuntil(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 413")
    writer.close()
    await writer.wait_closed()


async def test_a_chunked_body_is_read_only_to_the_limit(house: ServedBook) -> None:
    address = house.url.removeprefix("http://")
    reader, writer = await asyncio.open_connection(*address.split(":"))
    writer.write(f"POST /v1/ask HTTP/1.1\r\nHost: {address}\r\nTransfer-Encoding: chunked\r\n\r\n".encode())
    piece = b"10000\r\n" + b"x" * 65536 + b"\r\n"
    for _ in range(17):
        writer.write(piece)
    head = await reader.readuntil(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 413")
    writer.close()


async def test_a_body_at_the_limit_is_read(house: ServedBook) -> None:
    body = b'{"query": "horn", "selected_text": "' + b"x" * 999_000 + b'"}'
    response = await house.client.post("/v1/ask", content=body, headers=JSON)
    assert response.status_code == 400
    assert "5000" in parse_error(response.text).message


CONFORMING: list[schemathesis.CheckFunction] = [
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
"""The responses conform to the OpenAPI document."""


def every_error(kind: type[BookError] = BookError) -> Iterator[type[BookError]]:
    yield kind
    for other in kind.__subclasses__():
        yield from every_error(other)


def strings(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    inner = list(value.values()) + list(value) if isinstance(value, dict) else value if isinstance(value, list) else []
    return [text for each in inner for text in strings(each)]


async def test_no_generated_request_causes_an_internal_error(house: ServedBook, pytestconfig: pytest.Config) -> None:
    cases = 10_000 if pytestconfig.getoption("full_size") else 100
    schema = schemathesis.openapi.from_dict(house.app.openapi())
    strategies = [
        operation.ok().as_strategy(generation_mode=mode)
        for operation in schema.get_all_operations()
        if isinstance(operation, Ok)
        for mode in schemathesis.GenerationMode
    ]
    kinds = house.app.openapi()["components"]["schemas"].values()
    # Words of our own messages may occur in a response, also if the generated input contains them.
    ours = {name for kind in kinds for name in kind.get("properties", {})} | {error.code for error in every_error()}
    seen: Counter[int] = Counter()
    slowest = (0.0, "")

    @settings(
        max_examples=cases,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.one_of(strategies))
    def every(case: Any) -> None:
        nonlocal slowest
        response = case.call(base_url=house.url, timeout=60)
        seen[response.status_code] += 1
        slowest = max(slowest, (response.elapsed, case.operation.label))
        assert response.status_code < 500, f"{response.text} {case.as_curl_command()}"
        case.validate_response(response, checks=CONFORMING)
        if response.status_code >= 400:
            try:
                parse_error(response.text)
            except (ValueError, KeyError, ValidationError) as error:
                raise AssertionError(f"{case.as_curl_command()} was answered with {response.text}") from error
            long = [text for text in strings(case.body) if len(text) > 12 and text not in ours]
            assert not [text for text in long if text in response.text], case.as_curl_command()

    await asyncio.to_thread(every)
    sys.stderr.write(f"{dict(seen)}, the slowest took {slowest[0]:.2f} s: {slowest[1]}\n")
    assert seen.total() >= cases
    assert {200, 400} <= seen.keys()

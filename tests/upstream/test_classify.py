"""SPEC 5: the classification of HTTP statuses and Retry-After headers."""

from __future__ import annotations

import subprocess
import sys

import pytest

from bythebook.errors import CohereAPIError
from bythebook.upstream.classify import classify_status, retry_after

NOON = 784_111_777.0  # Sun, 06 Nov 1994 08:49:37 GMT


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        pytest.param({}, None, id="no header"),
        pytest.param({"retry-after": "7"}, 7.0, id="seconds"),
        pytest.param({"retry-after": "0.5"}, 0.5, id="a fraction"),
        pytest.param({"retry-after": "-3"}, 0.0, id="negative"),
        pytest.param({"retry-after-ms": "1500"}, 1.5, id="milliseconds"),
        pytest.param({"retry-after-ms": "1500", "retry-after": "2"}, 1.5, id="milliseconds are finer"),
        pytest.param({"retry-after-ms": "soon", "retry-after": "2"}, 2.0, id="invalid milliseconds"),
        pytest.param({"retry-after": "Sun, 06 Nov 1994 08:50:37 GMT"}, 60.0, id="a date"),
        pytest.param({"retry-after": "Sun, 06 Nov 1994 08:00:00 GMT"}, 0.0, id="a date that has passed"),
        pytest.param(
            {"retry-after": "Sun, 06 Nov 1994 10:00:10 GMT", "date": "Sun, 06 Nov 1994 10:00:00 GMT"},
            10.0,
            id="a date by the service's own clock",
        ),
        pytest.param({"retry-after": "a while"}, None, id="not parsable"),
        pytest.param({"retry-after": "nan"}, None, id="not a number"),
        pytest.param({"retry-after": "inf"}, None, id="infinite"),
        pytest.param({"retry-after": "99999999999999999999 Nov 1994"}, None, id="not a date"),
    ],
)
def test_parses_retry_after(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers, clock=lambda: NOON) == seconds


@pytest.mark.parametrize(
    ("status", "code", "again", "counts"),
    [
        (400, "api_error", False, False),
        (401, "provider_auth", False, False),
        (402, "api_error", False, False),
        (403, "provider_auth", False, False),
        (404, "api_error", False, False),
        (408, "api_error", True, False),
        (409, "api_error", False, False),
        (413, "context_overflow", False, False),
        (422, "api_error", False, False),
        (429, "rate_limit", True, False),
        (500, "api_error", True, True),
        (502, "api_error", True, True),
        (503, "api_error", True, True),
        (504, "api_error", True, True),
        (529, "api_error", True, True),
    ],
)
def test_classifies_statuses(status: int, code: str, again: bool, counts: bool) -> None:
    failure = classify_status("model", status, headers={"retry-after": "3"})
    assert (failure.error.code, failure.again, failure.counts) == (code, again, counts)
    assert failure.error.retry_after == (3.0 if again else None)
    assert f"HTTP {status}" in str(failure.error)


def test_a_service_can_have_its_own_error_class() -> None:
    assert isinstance(classify_status("cohere", 500, headers={}, error=CohereAPIError).error, CohereAPIError)


def test_importing_upstream_imports_no_client_library() -> None:
    loaded = (
        "import sys, bythebook.upstream; print({'openai', 'httpx', 'httpx2', 'pydantic'} & {*sys.modules} or 'none')"
    )
    done = subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "none"

"""Telemetry is that of the whole process, so these tests begin without listeners."""

from collections.abc import Iterator

import pytest

from tests.support.telemetry import no_listeners


@pytest.fixture(autouse=True)
def without_listeners() -> Iterator[None]:
    with no_listeners():
        yield

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace

import pytest

from bythebook.conversations.locks import LeaseOwner


@pytest.fixture
def ended() -> int:
    """The id of a process that has ended."""
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    return process.pid


def test_an_owner_round_trips_as_text() -> None:
    owner = LeaseOwner.current()
    assert LeaseOwner.parse(str(owner)) == owner


def test_each_store_has_a_distinct_owner() -> None:
    assert LeaseOwner.current() != LeaseOwner.current()
    assert LeaseOwner.current().pid == os.getpid()


def test_a_running_process_is_not_dead() -> None:
    assert not LeaseOwner.current().is_dead()
    assert not replace(LeaseOwner.current(), started="").is_dead()


def test_an_ended_process_is_dead(ended: int) -> None:
    assert replace(LeaseOwner.current(), pid=ended).is_dead()
    assert replace(LeaseOwner.current(), pid=ended, started="").is_dead()


@pytest.mark.skipif(not LeaseOwner.current().started, reason="when a process was started is known on Linux only")
def test_a_reused_process_id_is_not_the_owner() -> None:
    assert replace(LeaseOwner.current(), started="1").is_dead()


def test_a_process_on_another_machine_is_never_reported_dead(ended: int) -> None:
    assert not replace(LeaseOwner.current(), pid=ended, place="another/machine").is_dead()

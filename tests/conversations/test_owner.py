from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace

import pytest

from bythebook.conversations.locks import Owner


@pytest.fixture
def ended() -> int:
    """The id of a process that was there and has ended."""
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    return process.pid


def test_an_owner_reads_back_as_it_was_written() -> None:
    owner = Owner.here()
    assert Owner.parse(str(owner)) == owner


def test_every_store_of_a_process_is_an_owner_of_its_own() -> None:
    assert Owner.here() != Owner.here()
    assert Owner.here().pid == os.getpid()


def test_a_process_that_runs_is_not_gone() -> None:
    assert not Owner.here().is_gone()
    assert not replace(Owner.here(), started="").is_gone()


def test_a_process_that_ended_is_gone(ended: int) -> None:
    assert replace(Owner.here(), pid=ended).is_gone()
    assert replace(Owner.here(), pid=ended, started="").is_gone()


@pytest.mark.skipif(not Owner.here().started, reason="when a process was started is known on Linux only")
def test_another_process_under_the_same_id_is_not_the_owner() -> None:
    assert replace(Owner.here(), started="1").is_gone()


def test_nobody_can_tell_of_a_process_on_another_machine(ended: int) -> None:
    assert not replace(Owner.here(), pid=ended, place="another/machine").is_gone()

"""The data that the entailment model is trained on: its labels hold, and only reading both texts tells them."""

from __future__ import annotations

import gzip
import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bythebook.models import ENTAILMENT
from bythebook.models.install import CONSTANTS, GRAPH, PACKAGE_DATA
from bythebook.models.onnx_graph import quantize_matrix
from training.changes import (
    Surroundings,
    change_condition,
    change_number,
    change_subject,
    negate,
    swap_places,
    swap_roles,
)
from training.data import Pair, is_held_out, read_labelled, with_heading
from training.deeds import Material, collect_material, make_deed_fact
from training.evaluate import auroc
from training.exported import is_exported, read_exported
from training.facts import Vocabulary, make_fact
from training.graphs import entailment_graph
from training.minimal_pairs import MadePair, Passage, make_pairs
from training.rewordings import (
    change_voice,
    move_condition,
    rephrase_instruction,
    resolve_pronoun,
    turn_comparison,
)

PAGE = Passage(
    "The scheduler",
    "The scheduler sends every task to a worker. It keeps 3 tasks in memory. If a worker fails, it is restarted.\n"
    "The broker stores messages in a queue. A queue can hold 500 messages. You can export the queue to a file.\n"
    "A warm start is faster than a cold start. The `max_tasks` option limits the number of tasks to 20. "
    "Workers must be registered before they receive tasks.",
)


def test_a_pair_that_is_labelled_in_two_ways_is_left_out(tmp_path: Path) -> None:
    write(
        tmp_path,
        [
            row("The cat sleeps.", "A cat sleeps.", "supported"),
            row("The cat sleeps", "a cat sleeps", "supported"),
            row("The dog barks.", "A dog is loud.", "supported"),
            row("The dog barks.", "A dog is loud.", "neutral"),
            {"set": "summedits", "a": "Sales rose.", "b": "Sales fell.", "label": "not_paraphrase"},
        ],
    )

    assert read_labelled(tmp_path) == [
        Pair("mnli", "The cat sleeps.", "A cat sleeps.", "supported"),
        Pair("summedits", "Sales rose.", "Sales fell.", "not_supported"),
    ]


def test_one_quote_in_fifty_is_held_out_and_the_same_ones_every_time() -> None:
    held_out = [is_held_out(f"quote {number}") for number in range(5000)]

    assert held_out == [is_held_out(f"quote {number}") for number in range(5000)]
    assert 0.01 < sum(held_out) / len(held_out) < 0.03


def test_a_quote_is_read_after_its_headings() -> None:
    assert with_heading("It runs.", "The scheduler") == "The scheduler: It runs."
    assert with_heading("It runs.", "") == "It runs."


@pytest.mark.parametrize(
    ("reword", "before", "after"),
    [
        pytest.param(
            change_voice,
            "The scheduler sends every task to a worker.",
            "Every task is sent by the scheduler to a worker.",
            id="passive",
        ),
        pytest.param(change_voice, "Data is encrypted by the client.", "The client encrypts data.", id="active"),
        pytest.param(
            move_condition,
            "If a worker fails, the scheduler restarts it.",
            "The scheduler restarts it if a worker fails.",
            id="condition last",
        ),
        pytest.param(
            turn_comparison,
            "A warm start is faster than a cold start.",
            "A cold start is slower than a warm start.",
            id="comparison",
        ),
        pytest.param(
            rephrase_instruction,
            "Export the list to a file.",
            "The list is exported to a file.",
            id="instruction",
        ),
    ],
)
def test_a_rewording_says_the_same(reword: Any, before: str, after: str) -> None:
    assert after in {reword(before, chance(seed)) for seed in range(9)}


@pytest.mark.parametrize(
    ("change", "before", "after"),
    [
        pytest.param(
            swap_places,
            "It copies files from the host to the guest.",
            "It copies files from the guest to the host.",
            id="from and to",
        ),
        pytest.param(negate, "The queue does not keep messages.", "The queue keeps messages.", id="negation"),
        pytest.param(change_number, "A queue can hold 500 messages.", "A queue can hold 3 messages.", id="number"),
        pytest.param(change_subject, "The broker is a process.", "The scheduler is a process.", id="subject"),
        pytest.param(swap_roles, "The host restarts the guest.", "The guest restarts the host.", id="active"),
        pytest.param(swap_roles, "The host restarts the guest.", "The host is restarted by the guest.", id="passive"),
    ],
)
def test_a_change_is_small_and_takes_its_words_from_the_neighbours(change: Any, before: str, after: str) -> None:
    around = Surroundings(["The scheduler keeps 3 tasks.", before])

    assert after in {change(before, around, chance(seed)) for seed in range(40)}


def test_a_condition_that_is_changed_is_not_the_same_condition() -> None:
    said = "The scheduler restarts it if a worker fails."
    made = {change_condition(said, Surroundings([said]), chance(seed)) for seed in range(40)}

    assert "The scheduler restarts it unless a worker fails." in made
    assert "The scheduler restarts it whether or not a worker fails." in made
    assert said not in made


def test_a_pronoun_becomes_what_the_sentence_before_is_about() -> None:
    assert resolve_pronoun("It keeps tasks.", "The scheduler sends tasks.") == "The scheduler keeps tasks."
    assert resolve_pronoun("The worker runs.", "The scheduler sends tasks.") is None


def test_the_same_seed_makes_the_same_pairs_and_as_many_true_as_false_of_each_kind() -> None:
    pairs = [pair for seed in range(30) for pair in make_pairs([PAGE], seed=seed)]

    assert pairs == [pair for seed in range(30) for pair in make_pairs([PAGE], seed=seed)]
    counts = Counter((pair.kind, pair.label) for pair in pairs)
    assert all(counts[kind, True] == counts[kind, False] for kind, _ in counts)


def test_shared_words_do_not_tell_true_pairs_from_false_ones() -> None:
    pairs = [pair for seed in range(60) for pair in make_pairs([PAGE], seed=seed)]

    reached = auroc([shared(pair) for pair in pairs], [pair.label for pair in pairs])

    assert 0.35 < reached < 0.65


def test_a_made_up_fact_has_a_claim_that_it_supports_and_another_one() -> None:
    words = Vocabulary(
        [f"Name {letter}" for letter in "ABCDEFGH"],
        [f"option_{letter}" for letter in "abcdefgh"],
        ["export the report", "delete the cache", "send the file"],
    )
    facts = [make_fact(words, chance(seed)) for seed in range(300)]

    assert {fact.kind for fact in facts} == {"role", "subject", "number", "comparison", "code"}
    assert all(fact.true != fact.false for fact in facts)
    assert facts == [make_fact(words, chance(seed)) for seed in range(300)]


def test_a_page_about_deeds_has_a_claim_that_it_supports_and_another_one_of_as_many_shared_words() -> None:
    facts = [make_deed_fact(material(), chance(seed)) for seed in range(600)]

    assert {fact.kind for fact in facts} == {
        *("item", "imperative", "condition", "order", "latter", "negation", "heading"),
        *("scope", "relative", "degree", "pair"),
    }
    assert all(fact.true != fact.false for fact in facts)
    assert facts == [make_deed_fact(material(), chance(seed)) for seed in range(600)]
    pairs = [
        MadePair(fact.kind, "", f"{fact.heading} {fact.quote}", claim, label)
        for fact in facts
        for claim, label in ((fact.true, True), (fact.false, False))
    ]
    assert 0.4 < auroc([shared(pair) for pair in pairs], [pair.label for pair in pairs]) < 0.6


def test_deeds_and_conditions_come_from_pages() -> None:
    words = Vocabulary([], [], ["export the report to a file", "show it", "the file"])

    found = collect_material(words, ["If a worker fails, the scheduler restarts the worker."])

    assert [deed.does for deed in found.deeds] == ["exports the report to a file"]
    assert [deed.done for deed in found.deeds] == ["the report is exported to a file"]
    assert found.conditions == ["a worker fails"]


def test_a_model_is_written_again_from_the_weights_read_out_of_it() -> None:
    folder = PACKAGE_DATA / ENTAILMENT.name

    exported = entailment_graph(read_exported(folder / GRAPH))

    assert is_exported(folder / GRAPH)
    assert exported.graph == (folder / GRAPH).read_bytes()
    assert exported.constants == (folder / CONSTANTS).read_bytes()


def test_quantised_weights_are_within_half_a_step_of_the_weights() -> None:
    matrix = np.random.default_rng(1).normal(size=(40, 30)).astype(np.float32)

    numbers, scale = quantize_matrix(matrix, axis=0, limit=64)

    assert np.abs(numbers).max() <= 64
    assert (np.abs(numbers * scale - matrix) <= scale / 2 + 1e-6).all()


def material() -> Material:
    purposes = "export the report|delete the cache|send the file to a host|print the list|encrypt the disk|open a port"
    words = Vocabulary(
        [f"Name {letter}" for letter in "ABCDEFGH"],
        [f"option_{letter}" for letter in "abcdefgh"],
        purposes.split("|"),
    )
    return collect_material(words, [f"If a {name} fails, the service stops." for name in ("disk", "host", "worker")])


def chance(seed: int) -> random.Random:
    return random.Random(seed)  # noqa: S311 - the same every time


def shared(pair: MadePair) -> float:
    claim, quote = set(plain(pair.claim)), set(plain(pair.quote))
    return len(claim & quote) / len(claim)


def plain(text: str) -> list[str]:
    return "".join(letter if letter.isalnum() else " " for letter in text.lower()).split()


def row(premise: str, hypothesis: str, label: str) -> dict[str, str]:
    return {"set": "mnli", "premise": premise, "hypothesis": hypothesis, "label": label}


def write(folder: Path, rows: list[dict[str, str]]) -> None:
    with gzip.open(folder / "mnli.jsonl.gz", "wt", encoding="utf-8") as file:
        file.write("\n".join(map(json.dumps, rows)))

"""Sentences of a model's answer are checked against the passages; a sentence without a supporting quote is removed."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from bythebook.answers.verification import Proof, prove
from tests.support.retrieval_results import TermWeights, found

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bythebook.answers.verification import Unsupported
    from bythebook.models.cross_encoder import CrossEncoder

WAYS: list[Unsupported] = ["remove", "mark"]

RESULTS = found(
    "ROS 2 is a set of software libraries and tools for building robot applications. It was first released in December "
    "2017. Nodes are processes that perform computation.\n\nThe middleware of ROS 2 is DDS, which does not need a "
    "central master. A queue holds at most 1,000 messages.",
    "Nodes exchange messages over topics. A topic is a named bus. Use `ros2 topic echo /chatter` to print what is sent."
    "\n\n```bash\nros2 topic list\nros2 topic echo /chatter\n```\n\n| Setting | Default |\n|---|---|\n| depth | 10 |",
    "Isaac Sim is a simulator by NVIDIA. It needs at least 16 GB of memory and an RTX graphics card. Rendering takes "
    "forty percent of the time.",
)


async def proof_of(answer: str) -> Proof:
    return await prove(answer, RESULTS, snapshot=TermWeights(RESULTS))


@pytest.mark.parametrize(
    ("said", "quote"),
    [
        pytest.param("Nodes are processes that perform computation.", "Nodes are processes", id="word for word"),
        pytest.param("ROS 2 is libraries and tools for robot applications.", "ROS 2 is a set", id="in other words"),
        pytest.param("It was released in December 2017.", "It was first released", id="a date"),
        pytest.param("A queue holds at most 1000 messages.", "A queue holds", id="digits with and without commas"),
        pytest.param("Rendering takes 40% of the time.", "Rendering takes forty", id="a number in words"),
        pytest.param("Isaac Sim needs at least 16 GB of memory.", "It needs at least 16 GB", id="a measure"),
        pytest.param("The middleware DDS needs no central master.", "The middleware of ROS 2", id="a negation"),
        pytest.param("Use `ros2 topic echo /chatter` to print it.", "Use `ros2 topic echo", id="a command"),
        pytest.param("| depth | 10 |", "| depth | 10 |", id="a row"),
        pytest.param("```bash\nros2 topic list\n```", "```bash", id="code"),
    ],
)
async def test_a_supported_sentence_stays_with_its_quote(said: str, quote: str) -> None:
    proof = await proof_of(said)
    assert [citation.quote[: len(quote)] for citation in proof.citations] == [quote]
    assert proof.rejected == ()


@pytest.mark.parametrize(
    ("said", "reason", "quote"),
    [
        pytest.param(
            "It was first released in December 2019.",
            "its quote does not have the number 2019",
            "It was first released in December 2017.",
            id="another year",
        ),
        pytest.param(
            "A queue holds at most 2,000 messages.",
            "its quote does not have the number 2000",
            "A queue holds at most 1,000 messages.",
            id="another number",
        ),
        pytest.param(
            "It needs at least 16 MB of memory and an RTX graphics card.",
            "its quote gives the number in another measure",
            "It needs at least 16 GB of memory and an RTX graphics card.",
            id="another measure",
        ),
        pytest.param(
            "The middleware of ROS 2 is DDS, which needs a central master.",
            "one of sentence and quote says no, and the other does not",
            "The middleware of ROS 2 is DDS, which does not need a central master.",
            id="without the not",
        ),
        pytest.param(
            "Nodes are not processes that perform computation.",
            "one of sentence and quote says no, and the other does not",
            "Nodes are processes that perform computation.",
            id="with a not",
        ),
        pytest.param(
            "Use `ros2 bag record` to print what is sent.",
            "its quote does not have ros2 bag record",
            "Use `ros2 topic echo /chatter` to print what is sent.",
            id="a command",
        ),
    ],
)
async def test_a_doubted_sentence_gives_way_to_the_books_own_words(said: str, reason: str, quote: str) -> None:
    proof = await proof_of(said)
    assert [doubted.reason for doubted in proof.rejected] == [reason]
    assert (proof.text, proof.share) == (f"“{quote}” [1]", 0.0)
    assert [(one.verdict, one.citations) for one in proof.sentences] == [("replaced", (1,))]
    assert [citation.quote for citation in proof.citations] == [quote]


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        pytest.param(
            "Call `rclpy.spin_once` to perform computation.",
            "its quote does not have rclpy.spin_once",
            id="a name in code",
        ),
        pytest.param("Elephants migrate across savannas.", "no passage speaks of it", id="something else"),
    ],
)
async def test_a_sentence_that_nothing_comes_near_is_removed_with_a_reason(said: str, reason: str) -> None:
    proof = await proof_of(said)
    assert ([doubted.reason for doubted in proof.rejected], proof.text, proof.proven) == ([reason], "", False)


async def test_a_quote_stands_in_an_answer_once() -> None:
    twice = await proof_of("A queue holds at most 2,000 messages. A queue holds at most 3,000 messages.")
    beside = await proof_of("A queue holds at most 1,000 messages. A queue holds at most 3,000 messages.")
    assert twice.text == "“A queue holds at most 1,000 messages.” [1]"
    assert beside.text == "A queue holds at most 1,000 messages [1]."
    assert [one.verdict for one in (*twice.sentences, *beside.sentences)] == ["replaced", "removed", "kept", "removed"]
    assert beside.share == 0.5


async def test_a_number_must_stand_in_the_quote_and_not_elsewhere_in_the_passages() -> None:
    proof = await proof_of("A queue holds at most 16 messages.")
    assert proof.rejected[0].reason == "its quote does not have the number 16"


async def test_remaining_text_keeps_its_markdown_and_citations_are_numbered_in_order() -> None:
    proof = await proof_of(
        "## Topics\n\nHere is how:\n\n- Nodes exchange messages over topics [2].\n- Nodes telepathically bond.\n"
        "- Nodes are processes that perform computation. [1] A topic is a named bus.\n\n"
        "```bash\nros2 topic list\n```\n\n## Weather\n\nIn summary, it rains in Paris. See [more](https://e.example).\n\n"
        "Sources:\n- [1] https://e.example"
    )
    assert proof.text == (
        "## Topics\n\nHere is how:\n\n- Nodes exchange messages over topics [1].\n"
        "- Nodes are processes that perform computation [2]. A topic is a named bus [3].\n\n"
        "```bash\nros2 topic list\n```\n\n[4]"
    )


async def test_two_sentences_with_one_quote_share_its_number() -> None:
    proof = await proof_of("Nodes exchange messages over topics. Messages are exchanged over topics by nodes.")
    assert proof.text == "Nodes exchange messages over topics [1]. Messages are exchanged over topics by nodes [1]."


async def test_a_sentence_may_have_two_quotes() -> None:
    proof = await proof_of("Nodes are processes that perform computation, and Isaac Sim is a simulator by NVIDIA.")
    assert {citation.chunk_id for citation in proof.citations} == {"chunk-1", "chunk-3"}


async def test_a_cited_passage_wins_a_tie() -> None:
    twice = found("Nodes are processes.", "Nodes are processes.", titles=("A", "B"))
    proof = await prove("Nodes are processes [2].", twice, snapshot=TermWeights(twice))
    assert [citation.chunk_id for citation in proof.citations] == ["chunk-2"]


async def test_unsupported_sentences_can_be_marked_instead() -> None:
    answer = "Nodes exchange messages over topics. Elephants migrate across savannas."
    proof = await prove(answer, RESULTS, snapshot=TermWeights(RESULTS), unsupported="mark")
    assert proof.text == "Nodes exchange messages over topics [1]. Elephants migrate across savannas [unverified]."


async def test_a_statement_of_missing_coverage_needs_a_verified_sentence() -> None:
    lacking = "The book does not mention a price."
    beside = await proof_of(f"Isaac Sim is a simulator by NVIDIA. {lacking}")
    alone = await proof_of(lacking)
    assert (beside.text, beside.declined) == (f"Isaac Sim is a simulator by NVIDIA [1]. {lacking}", True)
    assert (alone.text, alone.declined, alone.proven) == ("", True, False)


async def test_nothing_is_verified_without_passages() -> None:
    proof = await prove("Nodes talk.", [], snapshot=TermWeights(RESULTS))
    assert (proof.proven, proof.rejected[0].reason) == (False, "no passage speaks of it")


@pytest.mark.parametrize("piece", ["a", "_", "1,", "(", "[", "| a ", "`a` ", "one ", "not ", "a: ", "x = 1\n"])
async def test_verification_takes_linear_time(piece: str) -> None:
    async def seconds(length: int) -> float:
        started = time.process_time()
        await prove((piece * length)[:length], RESULTS, snapshot=TermWeights(RESULTS))
        return time.process_time() - started

    await seconds(1_000)
    short = min([await seconds(16_000) for _ in range(3)])
    long = min([await seconds(64_000) for _ in range(3)])
    assert long < 1.0
    assert long < 6.25 * max(short, 0.01)


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        pytest.param("```yaml\nserver:\n  port: 80\n```", True, id="a part of the book's code"),
        pytest.param("```yaml\nserver:\n  port: 80\n  name: 'mine'\n```", True, id="another literal"),
        pytest.param("```yaml\nport: 80\n```", False, id="an option at another level"),
        pytest.param("```yaml\nserver:\n  port: 81\n```", False, id="another number"),
        pytest.param("```yaml\nserver:\n  name: 'book'\n  port: 80\n```", False, id="another order"),
        pytest.param("```yaml\nserver:\n  ports: 80\n```", False, id="another name"),
        pytest.param("```\nnpm start\n```", True, id="a command that a sentence names"),
    ],
)
async def test_code_must_be_the_books_code(said: str, *, kept: bool) -> None:
    book = found(
        "Set the port in the settings:\n\n```yaml\nserver:\n  port: 80\n  name: 'book'\nlog:\n  level: 2\n```\n\n"
        "Then run `npm start` in the folder."
    )
    proof = await prove(said, book, snapshot=TermWeights(book))
    assert [one.verdict for one in proof.sentences] == ["kept" if kept else "replaced"]
    assert (said.strip("`") in proof.text) == kept


async def test_an_introduction_goes_with_what_it_introduces() -> None:
    proof = await proof_of("Nodes exchange messages over topics:\n\n- Elephants migrate.\n- Oysters sing.")
    assert (proof.text, proof.proven) == ("", False)


@pytest.mark.parametrize(
    ("said", "cut_off", "text"),
    [
        pytest.param("Nodes exchange messages over topics. A topic is a", False,
                     "Nodes exchange messages over topics [1].", id="without an end"),
        pytest.param("Nodes exchange messages over topics.\n\n- A topic is a", True,
                     "Nodes exchange messages over topics [1].", id="an item at the limit of tokens"),
        pytest.param("Nodes exchange messages over topics", False, "Nodes exchange messages over topics [1]",
                     id="a single sentence"),
    ],
)  # fmt: skip
async def test_a_sentence_that_was_cut_off_goes(said: str, *, cut_off: bool, text: str) -> None:
    proof = await prove(said, RESULTS, snapshot=TermWeights(RESULTS), cut_off=cut_off)
    assert proof.text == text


@pytest.mark.parametrize(
    "said",
    [
        "I don't have information about that in the book content.",
        "The passages do not mention a price.",
        "Dazu gibt es in den Passagen keine Informationen.",
        "Die Abschnitte erwähnen den Preis nicht.",
        "Les passages ne mentionnent pas le prix.",
        "Je n'ai aucune information à ce sujet.",
        "El libro no menciona el precio.",
        "No tengo información sobre eso.",
        "لا توجد معلومات عن ذلك في الكتاب.",
    ],
)
async def test_a_model_that_declines_is_understood(said: str) -> None:
    proof = await proof_of(f"{said} Isaac Sim is a simulator made in Marseille by an oyster.")
    assert (proof.declined, proof.proven, proof.text) == (True, False, "")


SAID = [
    "Nodes exchange messages over topics", "A topic is a named bus", "Elephants migrate", "ROS 2 is DDS", "[r]",
    "`ros2 topic`", ". ", ".\n", "\n\n", "\n- ", "\n1. ", "\n## ", "\n| a | b |\n|---|---|\n", "| depth | 10 |",
    "\n```\n", "`", "[1]", "[2, 3]", "[9]", "[x](https://e.example)", "![i](https://e.example)", "https://e.example",
    "<b>", "<img src=x>", "[r]: https://e.example", "[a][r]", "[^1]", "\n[^1]: Topics\n", "Sources:\n", ":", "**", " ",
    "(", ")", "]", "[", "!", "the book does not mention it", "Here is how:", "【1†s】",
]  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(answer=st.lists(st.sampled_from(SAID), max_size=14).map("".join), way=st.sampled_from(WAYS))
async def test_any_answer_gets_exact_quotes_and_no_links(answer: str, way: Unsupported) -> None:
    proof = await prove(answer, RESULTS, snapshot=TermWeights(RESULTS), unsupported=way)
    texts = {result.chunk_id: result.text for result in RESULTS}
    assert all(one.quote == texts[one.chunk_id][one.start : one.end] for one in proof.citations)
    assert [one.number for one in proof.citations] == list(range(1, len(proof.citations) + 1))
    assert {number for said in proof.sentences for number in said.citations} == {one.number for one in proof.citations}
    assert all(f"[{one.number}]" in proof.text for one in proof.citations)
    tokens = MarkdownIt("commonmark").enable("table").parse(proof.text)
    kinds = {token.type for token in tokens} | {inner.type for token in tokens for inner in token.children or ()}
    assert not kinds & {"link_open", "image", "html_inline", "html_block"}


async def test_every_sentence_gets_a_verdict_and_a_reason() -> None:
    said = (
        "Here is what I found:\n\nROS 2 was first released in December 2017. Rendering takes 40 seconds. "
        "It was built in Marseille by Acme. The middleware DDS needs a central master."
    )
    proof = await proof_of(said)
    told = {one.text: one for one in proof.sentences}
    released, rendering, built, master = list(told.values())[1:]
    assert [one.verdict for one in proof.sentences] == ["kept", "kept", "replaced", "removed", "replaced"]
    assert (released.citations, built.citations) == ((1,), ())
    assert "number 2017: found" in released.checked
    assert "measure 40 s: another measure" in rendering.checked
    assert rendering.reason == "its quote gives the number in another measure"
    assert "name marseille: missing" in built.checked
    assert master.reason == "one of sentence and quote says no, and the other does not"


async def test_a_missing_name_is_given_as_the_reason() -> None:
    (gone,) = (await proof_of("Nodes of the Oyster company in Marseille perform songs.")).sentences
    assert gone.verdict == "removed"
    assert gone.reason.endswith("does not name marseille")


async def test_an_unsupported_sentence_that_stays_is_marked() -> None:
    said = "Nodes are processes that perform computation. Oysters sing at dawn."
    proof = await prove(said, RESULTS, snapshot=TermWeights(RESULTS), unsupported="mark")
    assert [(one.verdict, one.citations) for one in proof.sentences] == [("kept", (1,)), ("marked", ())]


class DoubtingModel:
    """An entailment model that believes nothing."""

    def count_tokens(self, text: str) -> int:
        return len(text) // 4

    async def score(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        return [-5.0 for _ in pairs]


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        pytest.param("Nodes are processes that perform computation.", True, id="the sentence itself"),
        pytest.param("You can use `ros2 topic echo /chatter` to print what's sent.", False, id="a word the book lacks"),
        pytest.param("Use ros2 topic echo /chatter to print what is sent.", True, id="without its markup"),
        pytest.param("A queue holds at most 1,000 messages.", True, id="with its limit"),
        pytest.param("A queue holds 1,000 messages.", False, id="the limit left out"),
        pytest.param(
            "ROS 2 is a set of libraries and tools for building robot applications.", True, id="a word left out"
        ),
        pytest.param("The middleware of ROS 2 is DDS.", False, id="a part before a negation"),
        pytest.param("The middleware of ROS 2 does need a central master.", False, id="the negation left out"),
        pytest.param("Isaac Sim needs a graphics card and 16 GB of memory.", False, id="another order"),
        pytest.param("ROS 2 is a set of tools for building simulators.", False, id="another object"),
    ],
)
async def test_a_sentence_of_the_book_with_few_words_left_out_needs_no_model(said: str, *, kept: bool) -> None:
    model = cast("CrossEncoder", DoubtingModel())
    proof = await prove(said, RESULTS, snapshot=TermWeights(RESULTS), entailment=model)
    assert [sentence.verdict == "kept" for sentence in proof.sentences] == [kept]

"""The contract of every conversation store, on SQLite and on a real PostgreSQL server."""

from __future__ import annotations

import asyncio
import random
import uuid
from contextlib import AsyncExitStack, suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

from bythebook.conversations import Conversation, ConversationStatus, ConversationTurn, Message, ToolCall, TurnState
from bythebook.conversations.store import open_conversations
from bythebook.errors import ContextOverflow, InputError, NotFound, Unavailable
from bythebook.retrieval import RetrievalResult
from tests.support.database_process import spawn

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from bythebook.conversations import Conversations

FOUND = RetrievalResult(
    "c1", "d1", "ROS 2 is a framework.", 0.87, 1, "https://book/ros2", "ROS 2", 0, 6, heading_hierarchy=("ROS 2",)
)
QUESTION = "What is ROS 2?"


@pytest_asyncio.fixture
async def store(url: str) -> AsyncIterator[Conversations]:
    async with open_conversations(url) as conversations:
        yield conversations


async def start(store: Conversations, *, user_id: str = "", max_history: int = 20) -> str:
    system = Message("system", "Answer from the book.", token_count=4)
    conversation = Conversation([system], user_id=user_id, model="extractive", max_history=max_history)
    await store.create(conversation)
    return conversation.id


def exchange(question: str, answer: str) -> list[Message]:
    return [Message("user", question), Message("assistant", answer)]


async def finish(store: Conversations, turn: ConversationTurn, answer: str = "A framework.") -> ConversationTurn:
    done = turn.complete({"answer": answer}, retrieval_results=[FOUND], duration_seconds=0.5)
    await store.finish_turn(done, exchange(turn.question, answer))
    return done


async def ask(store: Conversations, conversation: str, question: str = QUESTION) -> ConversationTurn:
    turn, _ = await store.begin_turn(conversation, question, user_id="")
    return await finish(store, turn, f"About {question}")


async def states(store: Conversations, conversation: str) -> list[tuple[int, TurnState]]:
    return [(turn.number, turn.state) for turn in await store.turns(conversation, user_id="")]


async def test_a_conversation_is_loaded_as_it_was_created(store: Conversations) -> None:
    started = Conversation([Message("system", "Answer from the book.")], user_id="ada", model="m", max_history=7)
    await store.create(started)
    assert await store.load(started.id, user_id="ada") == started


async def test_all_messages_of_a_turn_are_stored(store: Conversations) -> None:
    conversation = await start(store)
    turn, before = await store.begin_turn(conversation, QUESTION, user_id="")
    said = [
        Message("user", QUESTION, name="ada", token_count=5, metadata={"selected": None}),
        Message("assistant", "", tool_calls=(ToolCall("a", "search_docs", '{"query": "ROS 2"}'),)),
        Message("tool", '{"results": []}', tool_call_id="a", name="search_docs"),
        Message("assistant", "A framework [1].", token_count=6, citations=({"number": 1, "quote": "is a framework"},)),
    ]
    done = turn.complete(
        {"answer": "A framework [1].", "grounded": True},
        retrieval_results=[FOUND],
        duration_seconds=0.25,
        standalone_question="What is the Robot Operating System 2?",
    )
    await store.finish_turn(done, said)

    after = await store.load(conversation, user_id="")
    assert after.messages == [*before.messages, *said]
    assert (after.status, after.turn_count, after.retrieval_count, after.total_tokens) == (
        ConversationStatus.COMPLETED,
        1,
        1,
        15,
    )
    assert await store.turns(conversation, user_id="") == [done]


async def test_a_search_made_before_the_model_was_asked_is_counted(store: Conversations) -> None:
    conversation = await start(store)
    await ask(store, conversation)
    assert (await store.load(conversation, user_id="")).retrieval_count == 1


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("日本語 🤖 עברית", id="any alphabet"),
        pytest.param("'; DROP TABLE turns; --", id="SQL"),
        pytest.param('100 % {braces} :name \\ "quoted"', id="signs"),
        pytest.param("x" * 100_000, id="long"),
    ],
)
async def test_any_text_is_stored_unchanged(store: Conversations, text: str) -> None:
    conversation = await start(store)
    turn, _ = await store.begin_turn(conversation, text, user_id="")
    response = {"answer": text, "odd": "\0 and \ud800", "number": 0.1}
    done = turn.complete(response, retrieval_results=[], duration_seconds=0.1)
    await store.finish_turn(done, exchange(text, text))
    assert await store.turns(conversation, user_id="") == [done]
    assert [m.content for m in (await store.load(conversation, user_id="")).messages[1:]] == [text, text]


async def test_turns_are_numbered_from_one_and_a_failed_one_keeps_its_number(store: Conversations) -> None:
    conversation = await start(store)
    await ask(store, conversation)
    turn, _ = await store.begin_turn(conversation, QUESTION, user_id="")
    failed = turn.fail("timeout", duration_seconds=30.0)
    await store.finish_turn(failed, [])
    await ask(store, conversation)
    C, F = TurnState.COMPLETED, TurnState.FAILED  # noqa: N806
    assert await states(store, conversation) == [(1, C), (2, F), (3, C)]
    assert (await store.turns(conversation, user_id=""))[1] == failed
    loaded = await store.load(conversation, user_id="")
    assert ([m.role for m in loaded.messages], loaded.turn_count) == (["system", *["user", "assistant"] * 2], 2)


async def test_begin_turn_returns_the_model_window(store: Conversations) -> None:
    conversation = await start(store, max_history=6)
    for number in range(1, 5):
        await ask(store, conversation, f"{number}?")
    _, shown = await store.begin_turn(conversation, "5?", user_id="")
    assert (shown.status, shown.turn_count) == (ConversationStatus.ACTIVE, 4)
    shown.add_message(Message("user", "5?"))
    assert [m.content for m in shown.window()[1:]] == ["3?", "About 3?", "4?", "About 4?", "5?"]
    everything = await store.load(conversation, user_id="")
    everything.add_message(shown.messages[-1])
    assert everything.to_openai_messages() == shown.to_openai_messages()


@pytest.mark.parametrize(
    "said",
    [
        pytest.param([], id="nothing"),
        pytest.param([Message("user", "Why?")], id="no answer"),
        pytest.param([Message("assistant", "So.")], id="no question"),
        pytest.param(exchange("Why?", "So.") + exchange("Why?", "So."), id="two"),
    ],
)
async def test_only_a_whole_exchange_completes_a_turn(store: Conversations, said: list[Message]) -> None:
    conversation = await start(store)
    turn, _ = await store.begin_turn(conversation, QUESTION, user_id="")
    with pytest.raises(InputError):
        await store.finish_turn(turn.complete({}, retrieval_results=[], duration_seconds=0.1), said)
    await store.finish_turn(turn.fail("api_error", duration_seconds=0.1), [])
    assert await states(store, conversation) == [(1, TurnState.FAILED)]
    assert len((await store.load(conversation, user_id="")).messages) == 1


async def test_a_turn_is_finished_exactly_once(store: Conversations) -> None:
    conversation = await start(store)
    turn, _ = await store.begin_turn(conversation, QUESTION, user_id="")
    with pytest.raises(InputError, match="still running"):
        await store.finish_turn(turn, [])
    with pytest.raises(InputError, match="keeps no messages"):
        await store.finish_turn(turn.fail("timeout", duration_seconds=1.0), exchange("Why?", "So."))
    done = await finish(store, turn)
    with pytest.raises(Unavailable, match="no longer running"):
        await finish(store, turn, "Another answer.")
    assert await store.turns(conversation, user_id="") == [done]


async def test_timestamps_never_decrease(store: Conversations) -> None:
    ahead = datetime.now(UTC) + timedelta(hours=1)
    conversation = Conversation([Message("system", "Answer.", timestamp=ahead)])
    await store.create(conversation)
    await ask(store, conversation.id)
    assert [m.timestamp for m in (await store.load(conversation.id, user_id="")).messages] == [ahead] * 3


async def test_values_that_are_not_json_are_rejected(store: Conversations) -> None:
    conversation = await start(store)
    turn, _ = await store.begin_turn(conversation, QUESTION, user_id="")
    with pytest.raises(InputError, match="JSON"):
        await store.finish_turn(turn.complete({"at": object()}, retrieval_results=[], duration_seconds=1.0), [])


async def test_a_conversation_is_created_once_and_with_a_system_message(store: Conversations) -> None:
    conversation = await store.load(await start(store), user_id="")
    with pytest.raises(InputError, match="already"):
        await store.create(conversation)
    with pytest.raises(InputError, match="system message"):
        await store.create(Conversation())


VERBS: list[tuple[str, Callable[[Conversations, str, str], Awaitable[object]]]] = [
    ("load", lambda store, this, user: store.load(this, user_id=user)),
    ("turns", lambda store, this, user: store.turns(this, user_id=user)),
    ("begin_turn", lambda store, this, user: store.begin_turn(this, QUESTION, user_id=user)),
    ("reset", lambda store, this, user: store.reset(this, user_id=user)),
    ("delete", lambda store, this, user: store.delete(this, user_id=user)),
]


@pytest.mark.parametrize("verb", [pytest.param(verb, id=name) for name, verb in VERBS])
async def test_foreign_and_absent_conversations_look_the_same(
    store: Conversations, verb: Callable[[Conversations, str, str], Awaitable[object]]
) -> None:
    theirs = await start(store, user_id="ada")
    said = set()
    strangers = [(theirs, "bob"), (theirs, ""), (theirs, "ADA"), (str(uuid.uuid4()), "ada"), (theirs, "\0")]
    for this, user in [*strangers, ("no id", "ada"), (theirs.upper(), "ada"), ("\0", "ada"), ("\ud800", "ada")]:
        with pytest.raises(NotFound) as caught:
            await verb(store, this, user)
        said.add(str(caught.value))
    assert len(said) == 1
    assert (await store.load(theirs, user_id="ada")).status is ConversationStatus.CREATED


async def test_the_latest_conversations_come_first(store: Conversations) -> None:
    first, second, third = [await start(store, user_id="ada") for _ in range(3)]
    await start(store, user_id="bob")
    for conversation, question in [(second, "What\n is ROS 2?"), (first, "x" * 300)]:
        turn, _ = await store.begin_turn(conversation, question, user_id="ada")
        await finish(store, turn)
    found = await store.latest(user_id="ada", limit=2)
    assert [(each.id, each.title, each.turn_count) for each in found] == [
        (first, "x" * 100, 1),
        (second, "What is ROS 2?", 1),
    ]
    assert [each.id for each in await store.latest(user_id="ada", limit=9)] == [first, second, third]
    assert await store.latest(user_id="\0", limit=9) == []


async def test_after_a_reset_only_the_system_message_is_loaded_and_the_numbers_go_on(store: Conversations) -> None:
    conversation = await start(store)
    for _ in range(5):
        await ask(store, conversation)
    await store.reset(conversation, user_id="")
    loaded = await store.load(conversation, user_id="")
    assert (loaded.id, len(loaded.messages), loaded.status, loaded.turn_count) == (
        conversation,
        1,
        ConversationStatus.ACTIVE,
        5,
    )
    turn, shown = await store.begin_turn(conversation, "And now?", user_id="")
    assert (turn.number, len(shown.messages)) == (6, 1)
    await finish(store, turn)
    assert [m.content for m in (await store.load(conversation, user_id="")).messages[1:]] == [
        "And now?",
        "A framework.",
    ]
    assert len(await store.turns(conversation, user_id="")) == 6


async def test_a_reset_waits_for_the_running_turn(store: Conversations) -> None:
    conversation = await start(store)
    turn, _ = await store.begin_turn(conversation, QUESTION, user_id="")
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(store.reset(conversation, user_id=""))
        await asyncio.sleep(0)
        await finish(store, turn)
    assert len((await store.load(conversation, user_id="")).messages) == 1


async def test_deleting_a_conversation_discards_a_pending_answer(store: Conversations) -> None:
    conversation = await start(store)
    await ask(store, conversation)
    turn, _ = await store.begin_turn(conversation, QUESTION, user_id="")
    await store.delete(conversation, user_id="")
    for lost in (store.load(conversation, user_id=""), finish(store, turn)):
        with pytest.raises(NotFound):
            await lost
    assert await store.latest(user_id="", limit=9) == []


async def test_inactive_conversations_expire(store: Conversations) -> None:
    idle, used = await start(store), await start(store)
    moment = datetime.now(UTC)
    await ask(store, used)
    assert await store.expire(moment) == 1
    assert [each.id for each in await store.latest(user_id="", limit=9)] == [used]
    with pytest.raises(NotFound):
        await store.load(idle, user_id="")


async def test_the_next_question_waits_for_the_answer_and_sees_it(store: Conversations) -> None:
    conversation = await start(store)
    turn, _ = await store.begin_turn(conversation, "1?", user_id="")
    async with asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(store.begin_turn(conversation, "2?", user_id=""))
        await asyncio.sleep(0)
        assert await states(store, conversation) == [(1, TurnState.RUNNING)]
        await finish(store, turn, "The first answer.")
    second, shown = waiting.result()
    assert (second.number, [m.content for m in shown.messages[1:]]) == (2, ["1?", "The first answer."])


async def test_fifty_concurrent_turns_run_in_order_of_arrival(store: Conversations) -> None:
    conversation = await start(store)
    questions = [f"Question {number}?" for number in range(1, 51)]
    async with asyncio.TaskGroup() as tasks:
        for question in questions:
            tasks.create_task(ask(store, conversation, question))
    turns = await store.turns(conversation, user_id="")
    assert [(turn.number, turn.question, turn.state) for turn in turns] == [
        (number, question, TurnState.COMPLETED) for number, question in enumerate(questions, 1)
    ]
    loaded = await store.load(conversation, user_id="")
    assert [m.content for m in loaded.messages[1:]] == [text for q in questions for text in (q, f"About {q}")]
    assert loaded.turn_count == 50


async def test_turns_of_several_servers_are_serialized(url: str) -> None:
    async with AsyncExitStack() as stack:
        servers = [await stack.enter_async_context(open_conversations(url)) for _ in range(6)]
        conversation = await start(servers[0])
        async with asyncio.TaskGroup() as tasks:
            for server in servers * 4:
                tasks.create_task(ask(server, conversation))
        expected = [(number, TurnState.COMPLETED) for number in range(1, 25)]
        assert await states(servers[0], conversation) == expected


async def test_conversations_do_not_wait_for_each_other(store: Conversations) -> None:
    one, other = await start(store), await start(store)
    await store.begin_turn(one, QUESTION, user_id="")
    assert (await ask(store, other)).number == 1


async def test_waiting_for_a_turn_times_out(url: str) -> None:
    async with open_conversations(url, patience=0.1) as store:
        conversation = await start(store)
        turn, _ = await store.begin_turn(conversation, QUESTION, user_id="")
        with pytest.raises(Unavailable, match="still being answered"):
            await store.begin_turn(conversation, "Well?", user_id="")
        await finish(store, turn)
        assert await states(store, conversation) == [(1, TurnState.COMPLETED)]


async def test_cancelling_a_waiting_turn_leaves_no_state(store: Conversations) -> None:
    conversation = await start(store)
    turn, _ = await store.begin_turn(conversation, "1?", user_id="")
    waiting = asyncio.create_task(store.begin_turn(conversation, "2?", user_id=""))
    await asyncio.sleep(0)
    waiting.cancel()
    with suppress(asyncio.CancelledError):
        await waiting
    await finish(store, turn)
    assert (await ask(store, conversation, "3?")).number == 2


async def test_cancellation_at_any_moment_blocks_no_other_turn(url: str, store: Conversations) -> None:
    conversation = await start(store)
    async with open_conversations(url, patience=5.0) as other:
        for moment in range(40):
            leaving = asyncio.create_task(ask(store, conversation, "Leaving?"))
            await asyncio.wait({leaving}, timeout=moment * 0.0002)
            leaving.cancel()
            await asyncio.wait({leaving})
            last = await ask(other, conversation, "Staying?")
    turns = await store.turns(conversation, user_id="")
    assert [turn.number for turn in turns] == list(range(1, last.number + 1))
    assert {turn.state for turn in turns} <= {TurnState.COMPLETED, TurnState.INTERRUPTED}
    loaded = await store.load(conversation, user_id="")
    completed = sum(turn.state is TurnState.COMPLETED for turn in turns)
    assert (loaded.turn_count, len(loaded.messages)) == (completed, 1 + 2 * completed)


async def test_an_expired_lease_interrupts_the_turn_and_discards_its_late_answer(url: str) -> None:
    async with open_conversations(url, lease=0.0) as slow, open_conversations(url) as other:
        conversation = await start(slow)
        late, _ = await slow.begin_turn(conversation, "1?", user_id="")
        second = await ask(other, conversation, "2?")
        with pytest.raises(Unavailable, match="no longer running"):
            await finish(slow, late)
        assert second.number == 2
        assert await states(other, conversation) == [(1, TurnState.INTERRUPTED), (2, TurnState.COMPLETED)]
        assert (await other.load(conversation, user_id="")).turn_count == 1


async def test_an_expired_lease_frees_a_conversation_also_for_the_process_that_forgot_its_turn(url: str) -> None:
    async with open_conversations(url, lease=0.0) as store:
        conversation = await start(store)
        await store.begin_turn(conversation, "1?", user_id="")
        second = await ask(store, conversation, "2?")
        assert await states(store, conversation) == [(1, TurnState.INTERRUPTED), (2, TurnState.COMPLETED)]
        assert second.number == 2


async def test_closing_interrupts_unfinished_turns(url: str) -> None:
    async with open_conversations(url) as closing:
        conversation = await start(closing)
        await closing.begin_turn(conversation, QUESTION, user_id="")
    async with open_conversations(url) as store:
        assert await states(store, conversation) == [(1, TurnState.INTERRUPTED)]


async def test_a_killed_process_leaves_its_turn_interrupted(url: str, store: Conversations) -> None:
    conversation = await start(store)
    with spawn(url, "begin", conversation) as killed:
        assert killed.stdout
        assert [killed.stdout.readline() for _ in range(2)] == ["open\n", "1\n"]
        assert await states(store, conversation) == [(1, TurnState.RUNNING)]
        killed.kill()
        killed.wait()
    assert await states(store, conversation) == [(1, TurnState.INTERRUPTED)]
    assert (await ask(store, conversation)).number == 2


async def test_the_next_turn_does_not_wait_for_a_killed_process(url: str, store: Conversations) -> None:
    conversation = await start(store)
    with spawn(url, "begin", conversation) as killed:
        assert killed.stdout
        assert [killed.stdout.readline() for _ in range(2)] == ["open\n", "1\n"]
        async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
            waiting = tasks.create_task(ask(store, conversation))
            await asyncio.sleep(0)
            killed.kill()
    assert waiting.result().number == 2


async def test_no_acknowledged_turn_is_lost_when_the_process_is_killed(url: str, store: Conversations) -> None:
    conversation, acknowledged = await start(store), list[int]()
    for seed in range(6):
        with spawn(url, "talk", conversation, "1000") as killed:
            assert killed.stdout
            killed.stdout.readline()
            for _ in range(random.Random(seed).randrange(1, 12)):  # noqa: S311
                acknowledged.append(int(killed.stdout.readline()))
            killed.kill()
            # Messages acknowledged before the kill must be stored.
            acknowledged += [int(line) for line in killed.stdout if line.endswith("\n")]
    turns = await store.turns(conversation, user_id="")
    kept = {turn.number for turn in turns if turn.state is TurnState.COMPLETED}
    assert set(acknowledged) <= kept
    assert [turn.number for turn in turns] == list(range(1, len(turns) + 1))
    loaded = await store.load(conversation, user_id="")
    assert [m.content for m in loaded.messages[1:]] == [
        text for number in sorted(kept) for text in (QUESTION, f"Answer {number}.")
    ]


async def test_two_processes_use_one_database_at_once(url: str, store: Conversations) -> None:
    conversation, own = await start(store), await start(store)
    with spawn(url, "talk", conversation, "25") as one, spawn(url, "talk", conversation, "25") as other:
        for _ in range(25):
            await ask(store, own)
        said = [int(line) for each in (one, other) for line in each.communicate()[0].split()[1:]]
    assert sorted(said) == list(range(1, 51))
    for this, turns in ((conversation, 50), (own, 25)):
        assert await states(store, this) == [(number, TurnState.COMPLETED) for number in range(1, turns + 1)]
        loaded = await store.load(this, user_id="")
        assert (loaded.turn_count, len(loaded.messages)) == (turns, 1 + 2 * turns)


async def test_concurrent_processes_create_a_new_database_once(url: str) -> None:
    openers = [spawn(url, "open") for _ in range(6)]
    assert [(each.communicate()[0], each.returncode) for each in openers] == [("open\n", 0)] * 6
    async with open_conversations(url) as store:
        await ask(store, await start(store))


async def test_the_limit_of_turns_counts_answers_since_the_reset(store: Conversations) -> None:
    conversation = await start(store)
    failed, _ = await store.begin_turn(conversation, QUESTION, user_id="", most_turns=2)
    await store.finish_turn(failed.fail("timeout", duration_seconds=1.0), [])
    for _ in range(2):
        turn, _ = await store.begin_turn(conversation, QUESTION, user_id="", most_turns=2)
        await finish(store, turn)
    with pytest.raises(ContextOverflow, match="2 turns"):
        await store.begin_turn(conversation, QUESTION, user_id="", most_turns=2)
    assert await states(store, conversation) == [
        (1, TurnState.FAILED),
        (2, TurnState.COMPLETED),
        (3, TurnState.COMPLETED),
    ]
    await store.reset(conversation, user_id="")
    await store.begin_turn(conversation, QUESTION, user_id="", most_turns=2)


async def test_a_first_turn_is_recorded_with_its_conversation(store: Conversations) -> None:
    conversation = Conversation([Message("system", "Answer from the book.")], user_id="ada", model="m")
    turn = ConversationTurn(conversation.id, 1, QUESTION).complete(
        {"answer": "A framework.", "tokens_used": 40}, retrieval_results=[FOUND], duration_seconds=0.5
    )
    await store.record(conversation, turn, exchange(QUESTION, "A framework."))
    loaded = await store.load(conversation.id, user_id="ada")
    assert [message.role for message in loaded.messages] == ["system", "user", "assistant"]
    assert (loaded.turn_count, loaded.status, loaded.total_tokens_used) == (1, ConversationStatus.COMPLETED, 40)
    assert await store.turns(conversation.id, user_id="ada") == [turn]
    following, _ = await store.begin_turn(conversation.id, "Since when?", user_id="ada")
    assert following.number == 2


async def test_conversations_are_listed_in_pages(store: Conversations) -> None:
    started = [await start(store, user_id="ada") for _ in range(5)]
    await start(store, user_id="bob")
    found: list[str] = []
    while page := await store.latest(user_id="ada", limit=2, after=found[-1] if found else ""):
        found += [summary.id for summary in page]
    assert found == started[::-1]
    with pytest.raises(NotFound):
        await store.latest(user_id="bob", limit=2, after=started[0])

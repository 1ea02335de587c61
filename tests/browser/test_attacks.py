"""HARDENING S4 in a real browser: nothing that a model, a page or a server says ever becomes more than text."""

from __future__ import annotations

import itertools
import re
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Route, expect

from bythebook import Book, Settings
from bythebook.serialization import CONTROL
from bythebook.testing import ScriptedReply
from tests.browser.conftest import HORN, Opening, Part
from tests.support.dom_watcher import CANARY, watched
from tests.support.server import ServedBook, serve_book, settings_for

pytestmark = pytest.mark.asyncio(loop_scope="session")

QUESTION = "How often does the horn sound?"
TOGETHER = 10
"""How many questions make a conversation, before it is read again and another one begins."""
LETTERS = 3
"""A model's tokens cut tags, attributes and addresses anywhere."""
DO = ("top.hit=1", f"fetch('{CANARY}')", f"new Image().src='{CANARY}'")
SHAPES = (
    "<script>{do}</script>",
    "<img src=x onerror={do}>",
    "<img src={canary}/a.png>",
    "<svg/onload={do}>",
    "<svg><script>{do}</script></svg>",
    "<iframe srcdoc='<script>{do}</script>'></iframe>",
    "<iframe src=javascript:{do}></iframe>",
    "<details open ontoggle={do}>",
    "<a href=javascript:{do}>here</a>",
    "<a href={canary}>here</a>",
    "<style>@import '{canary}';</style>",
    "<link rel=stylesheet href={canary}>",
    "<meta http-equiv=refresh content='0;url={canary}'>",
    "<form action={canary}><button autofocus onfocus={do}>x</button></form>",
    "<math><mtext><table><mglyph><style><!--</style><img src onerror={do}>",
    "<noscript><p title='</noscript><img src=x onerror={do}>'>",
    "[here](javascript:{do})",
    "[here]({canary})",
    "![here]({canary}/a.png)",
    "![here][x]\n\n[x]: {canary}/a.png",
    "[1]({canary})",
    "[Source: Fog signals]({canary})",
    "<{canary}>",
    "{canary}/path?q={do}",
    "```html\n<img src=x onerror={do}>\n```",
    "`<img src=x onerror={do}>`",
    "$<img src=x onerror={do}>$",
    "| a |\n|---|\n| <img src=x onerror={do}> |",
    "&lt;img src=x onerror={do}&gt;",
    "\u202e<img src=x onerror={do}>",
    "<by-the-book></by-the-book><slot onslotchange={do}>",
    "</div></article></section><img src=x onerror={do}>",
    "{{{{constructor.constructor('{do}')()}}}}",
    "<template shadowrootmode=open><img src=x onerror={do}></template>",
)
FRAMES = ("{0}", f"{HORN}. [1] {{0}}", f"{{0}}\n\n{HORN}. [1]", f"- {{0}}\n- {HORN}. [1]", f"> {{0}} {HORN}. [1]")
PAYLOADS = [
    frame.format(shape.format(do=do, canary=CANARY)) for shape, do, frame in itertools.product(SHAPES, DO, FRAMES)
]

ANNALS = "https://annals.example/"


@pytest.fixture(scope="session")
def payloads(request: pytest.FixtureRequest) -> list[str]:
    """All of them, or a few of each kind."""
    return PAYLOADS[:500] if request.config.getoption("--full-size") else PAYLOADS[:: len(PAYLOADS) // 9]


def conversations(questions: Sequence[Any]) -> Iterator[Sequence[Any]]:
    for start in range(0, len(questions), TOGETHER):
        yield questions[start : start + TOGETHER]


async def test_the_watcher_detects_an_executed_payload(book: ServedBook, window: Opening) -> None:
    async with watched(window, book.url, books=()) as reader:
        await reader.page.evaluate(
            """() => {
              const { shadowRoot } = document.querySelector('by-the-book');
              shadowRoot.querySelector('.thread').append(document.createElement('img'), document.createElement('a'));
              shadowRoot.querySelector('a').href = 'https://elsewhere.example';
            }"""
        )
        assert await reader.incidents() == ["<img>", '<a href="https://elsewhere.example"></a>']


async def test_the_watcher_checks_the_page_after_every_token(book: ServedBook, model: Part, window: Opening) -> None:
    model.reply = ScriptedReply(f"{HORN}. [1]", letters=LETTERS)
    async with watched(window, book.url, books=()) as reader:
        await reader.ask(QUESTION)
        seen = await reader.page.evaluate("window.shown")
    assert {HORN[:end].strip() for end in range(LETTERS, len(HORN), LETTERS)} <= set(seen)


async def test_s4_no_payload_in_an_answer_or_in_the_history_runs_or_sends_a_request(
    book: ServedBook, model: Part, window: Opening, payloads: list[str]
) -> None:
    async with watched(window, book.url, books=()) as reader:
        for some in conversations(payloads):
            for payload in some:
                model.reply = ScriptedReply(f"{payload}\n\n{HORN}. [1]", letters=LETTERS)
                await reader.ask(QUESTION)
            await reader.reload()
            await expect(reader.page.locator("article")).to_have_count(len(some))
            await reader.afresh()
        assert await reader.incidents() == []


async def test_s4_no_payload_in_a_question_runs(book: ServedBook, window: Opening, payloads: list[str]) -> None:
    async with watched(window, book.url, books=()) as reader:
        for some in conversations(payloads):
            for payload in some:
                await reader.ask(f"{QUESTION} {payload}"[:900])
            await reader.reload()
            await expect(reader.page.locator("article")).to_have_count(len(some))
            await reader.afresh()
        assert await reader.incidents() == []


@pytest_asyncio.fixture(loop_scope="session", scope="session")
async def annals(
    payloads: list[str], model_folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[ServedBook]:
    """A book with a payload in the name of every folder and file, in every title and every heading."""
    folder = tmp_path_factory.mktemp("annals")
    for number, payload in enumerate(payloads):
        # A file whose name has control characters is skipped.
        line, name = " ".join(payload.split()), CONTROL.sub("", re.sub(r"[/\n\t]", "", payload))[:60]
        home = folder / "pages" / f"{number} {name}"
        home.mkdir(parents=True)
        fact = f"In the year {1500 + number} the harbour took in {number + 7} ships."
        (home / f"{name[:40]}.md").write_text(f"# {number} {line}\n\n## Ships {line}\n\n{fact}\n", encoding="utf-8")
    data = {"data_dir": folder / "data", "model_folder": model_folder, "site_url": ANNALS}
    async with Book.open(Settings.load(data, folder=folder)) as book:
        assert not (await book.ingest(folder / "pages")).skipped
    settings = settings_for(folder / "data", model_folder, folder, max_conversation_turns=10_000)
    async with serve_book(settings) as served:
        yield served


async def test_s4_no_payload_in_a_title_a_url_or_a_section_runs(
    annals: ServedBook, window: Opening, payloads: list[str]
) -> None:
    cited = 0
    async with watched(window, annals.url, books=(ANNALS,)) as reader:
        for numbers in conversations(range(len(payloads))):
            for number in numbers:
                await reader.ask(f"How many ships did the harbour take in in the year {1500 + number}?")
                cite = reader.page.locator("article").last.locator(".answer .cite").first
                if await cite.count():
                    cited += 1
                    await cite.hover()
            await reader.reload()
            await expect(reader.page.locator("article")).to_have_count(len(numbers))
            await reader.afresh()
        assert await reader.incidents() == []
    assert cited > len(payloads) * 0.8


async def test_s4_no_payload_in_an_error_runs(
    book: ServedBook, model: Part, window: Opening, payloads: list[str]
) -> None:
    async with watched(window, book.url, books=()) as reader:
        for payload in payloads[::3]:
            model.reply = ScriptedReply(status=400, error_code=payload, error_message=payload)
            await reader.ask(QUESTION)
            await expect(reader.page.locator(".status.error")).to_have_text("The book cannot be reached right now.")
            await reader.afresh()
        said = iter(payloads)

        async def refuse(route: Route) -> None:
            payload = next(said)
            await route.fulfill(status=418, json={"error": payload, "user_message": payload, "retry_after": 3})

        await reader.page.route("**/v1/ask", refuse)
        for _ in payloads:
            await reader.ask(QUESTION)
            await reader.afresh()
        reader.window.troubles = [said for said in reader.window.troubles if "Failed to load resource" not in said]
        assert await reader.incidents() == []

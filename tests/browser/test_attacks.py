"""HARDENING S1 and S4 in a real browser: nothing a model or a page says becomes more than text."""

from __future__ import annotations

import itertools

import pytest
from playwright.async_api import expect

from browser.conftest import HORN, Opening, Part, Window
from bythebook.testing import Reply
from served import Served

pytestmark = pytest.mark.asyncio(loop_scope="session")

CANARY = "http://canary.invalid"
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

WATCH = """() => {
  const root = document.querySelector('by-the-book').shadowRoot;
  window.incidents = [];
  const allowed = new Set(('a blockquote br code em h3 h4 h5 h6 hr li ol p pre s span strong table tbody td th thead'
    + ' tr ul').split(' '));
  const look = () => {
    for (const answer of root.querySelectorAll('.answer')) {
      for (const node of answer.querySelectorAll('*')) {
        if (!allowed.has(node.localName)) window.incidents.push(node.outerHTML);
        if (node.localName === 'a' && !/^(file|https?):/.test(node.href)) window.incidents.push(node.outerHTML);
        if (node.href && node.href.includes('canary')) window.incidents.push(node.outerHTML);
        for (const { name } of node.attributes) if (name.startsWith('on')) window.incidents.push(node.outerHTML);
      }
    }
  };
  new MutationObserver(look).observe(root, { subtree: true, childList: true, attributes: true });
}"""


@pytest.fixture
def payloads(request: pytest.FixtureRequest) -> list[str]:
    """All of them, or a few of each kind."""
    return PAYLOADS[:500] if request.config.getoption("--full-size") else PAYLOADS[:: len(PAYLOADS) // 12]


async def ask(one: Window, question: str) -> None:
    await one.page.get_by_role("textbox", name="Your question").fill(question)
    await one.page.keyboard.press("Enter")
    turn = one.page.locator("article").last
    await expect(turn.locator(".below > *").first).to_be_visible()


async def test_s4_no_payload_in_an_answer_ever_runs_or_calls_out(
    book: Served, model: Part, window: Opening, payloads: list[str]
) -> None:
    async with window() as one:
        requests: list[str] = []
        one.page.on("request", lambda request: requests.append(request.url))
        await one.page.goto(book.url)
        await one.page.evaluate(WATCH)
        for payload in payloads:
            model.reply = Reply(f"{payload}\n\n{HORN}. [1]")
            await ask(one, "How often does the horn sound?")
            await one.page.get_by_role("button", name="New conversation").click()
        assert await one.page.evaluate("window.incidents") == []
        assert await one.page.evaluate("window.hit") is None
        assert [url for url in requests if not url.startswith(book.url)] == []
        assert one.troubles == []


async def test_s4_no_payload_in_a_question_or_in_the_history_ever_runs(
    book: Served, window: Opening, payloads: list[str]
) -> None:
    async with window() as one:
        await one.page.goto(book.url)
        await one.page.evaluate(WATCH)
        for payload in payloads[:6]:
            await ask(one, f"How often does the horn sound? {payload}"[:900])
        await one.page.reload()
        await expect(one.page.locator("article")).not_to_have_count(0)
        assert await one.page.evaluate("window.hit") is None
        assert one.asked_of == {book.url}
        assert one.troubles == []

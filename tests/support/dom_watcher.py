"""Watching a reader's browser: after every change of what is shown, is it still only what it should be?"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from playwright.async_api import Page, expect

from tests.browser.conftest import Opening, Window

CANARY = "http://canary.invalid"
"""Where everything that gets out would go."""

_WATCH = """({ books, secrets }) => {
  const own = new Set(('a article blockquote br button code details div em form h1 h2 h3 h4 h5 h6 header hr input li ol'
    + ' option p path pre q s section select span strong summary svg table tbody td textarea th thead tr ul').split(' ')
  );
  const active = ['src', 'srcset', 'style', 'action', 'ping'];
  window.incidents = [];
  window.shown = [];
  // No frame is waited for: what each token has changed is on the page, and looked at, before the next one comes.
  window.requestAnimationFrame = (change) => { change(performance.now()); return 0; };
  const look = (root) => {
    for (const node of root.querySelectorAll('*')) {
      const attributes = [...node.attributes].map(({ name }) => name);
      const wrong = !own.has(node.localName)
        || (attributes.some((name) => name.startsWith('on') || active.includes(name)) && !node.matches('.tip, .pick'))
        || (node.hasAttribute('href') && !books.some((book) => node.href.startsWith(book)));
      if (wrong) window.incidents.push(node.outerHTML);
    }
    window.shown.push([...root.querySelectorAll('.answer')].at(-1)?.textContent.trim());
    for (const secret of secrets) if (root.textContent.includes(secret)) window.incidents.push(secret);
  };
  const watch = () => {
    const { shadowRoot } = document.querySelector('by-the-book');
    look(shadowRoot);
    new MutationObserver(() => look(shadowRoot))
      .observe(shadowRoot, { subtree: true, childList: true, attributes: true, characterData: true });
  };
  document.addEventListener('securitypolicyviolation', (event) => window.incidents.push(event.blockedURI));
  if (document.querySelector('by-the-book')) watch();
  else document.addEventListener('DOMContentLoaded', watch);
}"""


@dataclass(slots=True)
class Watched:
    """A window in which nothing goes unseen."""

    window: Window
    url: str
    requests: list[str] = field(default_factory=list)
    seen: list[str] = field(default_factory=list)

    @property
    def page(self) -> Page:
        return self.window.page

    async def ask(self, question: str) -> None:
        """Ask, and wait until there is an answer or an error."""
        before = await self.page.locator("article").count()
        await self.page.get_by_role("textbox", name="Your question").fill(question)
        await self.page.keyboard.press("Enter")
        await expect(self.page.locator("article").nth(before).locator(".below > *").first).to_be_visible()

    async def afresh(self) -> None:
        await self.page.get_by_role("button", name="New conversation").click()

    async def look(self) -> None:
        """Take down what was noticed on this page, before it goes."""
        self.seen += await self.page.evaluate("window.incidents")
        if await self.page.evaluate("window.hit !== undefined"):
            self.seen.append("a script of the attacker's has run")

    async def reload(self) -> None:
        await self.look()
        await self.page.reload()

    async def incidents(self) -> list[str]:
        """Everything that should not have happened so far."""
        await self.look()
        abroad = [url for url in self.requests if not url.startswith((self.url, "data:"))]
        return self.seen + abroad + self.window.troubles


@asynccontextmanager
async def watched(
    window: Opening, url: str, *, books: tuple[str, ...], secrets: tuple[str, ...] = ()
) -> AsyncIterator[Watched]:
    """The chat page, watched. Links may lead into these books and to the server's view of their pages.

    None of the secrets may ever be shown.
    """
    async with window() as one:
        found = Watched(one, url)
        one.page.on("request", lambda request: found.requests.append(request.url))
        one.page.on("dialog", lambda dialog: found.seen.append(f"a dialog: {dialog.message}"))
        one.page.on("popup", lambda popup: found.seen.append(f"a window: {popup.url}"))
        arguments = {"books": [*books, f"{url}/read/"], "secrets": list(secrets)}
        await one.page.add_init_script(f"({_WATCH})({json.dumps(arguments)})")
        await one.page.goto(url)
        yield found

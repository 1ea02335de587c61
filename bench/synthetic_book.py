"""A book to measure with: Markdown that reads like a manual, the same on every machine."""

from __future__ import annotations

import random
from itertools import product
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_KINDS = "buffer broker cache cursor dispatcher exporter gateway index ledger listener mirror parser planner".split()
_KINDS += "probe queue registry relay resolver router sampler scheduler session snapshot store stream watcher".split()
_MATERIALS = "amber basalt cedar cobalt copper coral flint granite hazel indigo juniper larch maple marble".split()
_MATERIALS += "ochre opal pewter quartz saffron slate topaz umber willow zinc".split()
_PARTS = "batch bucket certificate checkpoint checksum column deadline entry envelope field filter folder frame".split()
_PARTS += "handler handle header interval key lease lock marker message namespace offset owner packet page".split()
_PARTS += "partition payload policy prefix quota range record region replica request schema segment signature".split()
_PARTS += "slot socket span subscription table tag template tenant thread timer token transaction tree window".split()
_VERBS = "accepts archives balances checks collects compares compresses copies counts delays delivers drops".split()
_VERBS += "encrypts expires flushes groups holds inspects keeps limits locks merges moves names orders pauses".split()
_VERBS += "publishes reads rebuilds records refuses releases renames repeats retries reverses rotates samples".split()
_VERBS += "scans sends signs skips sorts splits starts stops stores sweeps traces trims unlocks verifies writes".split()
_QUALITIES = "active broken cold current duplicate empty expired external fresh idle invalid large late local".split()
_QUALITIES += (
    "missing nested oldest open partial pending private public recent remote sealed shared single slow".split()
)
_QUALITIES += "small stale temporary unread urgent valid waiting".split()
_WHEN = (
    "once an hour", "before the next restart", "after the first failure", "when the disk is nearly full",
    "as soon as the leader changes", "while a backup is running", "when nobody has asked for a minute",
    "before anything is written", "after every upgrade", "when two clients disagree", "during a slow start",
    "as long as the clock is trusted", "unless the operator says otherwise", "when the network comes back",
    "in the order of arrival", "on the machine that holds the lease", "without waiting for the others",
    "at most three times in a row", "even when the answer is not needed", "only in the region of its owner",
)  # fmt: skip
_SENTENCES = (
    "The {thing} {verb} each {quality} {part} {when}.",
    "A {quality} {part} is never the same as a {quality2} one, so the {thing} {verb} both {when}.",
    "If the {part} has no {part2}, the {thing} {verb} it and {verb2} the {quality} {part3} instead.",
    "Set `{part}_{part2}` to {number} to have the {thing} react within {number2} seconds.",
    "It {verb} up to {number} {part}s for each {part2}, and {verb2} the rest {when}.",
    "Operators often ask why the {quality} {part} is not seen by the {thing}: it {verb} the {part2} first.",
    "Nothing is lost, because the {thing} {verb} every {part} to the {quality} {part2} {when}.",
    "Use the {quality} {part} for tests, and the {quality2} {part2} in production, where the {thing} {verb} it {when}.",
    "When a {part} arrives twice, the second one is dropped and the {thing} {verb} its {part2}.",
    "The default of {number} {part}s suits most sites; the {thing} {verb} more of them only {when}.",
)
_SECTIONS = (
    "What it is for", "How it starts", "Settings", "Limits", "When something fails", "Moving to another machine",
    "Watching it at work", "A worked example", "Permissions", "Upgrading", "Frequent questions", "How it is tested",
)  # fmt: skip


class Author:
    """Writes pages out of a fixed stock of words. The same seed writes the same book."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)  # noqa: S311 - the same book every time is the point

    def sentence(self, thing: str) -> str:
        choose = self._random.choice
        return choose(_SENTENCES).format(
            thing=thing,
            part=choose(_PARTS), part2=choose(_PARTS), part3=choose(_PARTS),
            verb=choose(_VERBS), verb2=choose(_VERBS),
            quality=choose(_QUALITIES), quality2=choose(_QUALITIES),
            when=choose(_WHEN), number=self._random.randint(2, 9_000), number2=self._random.randint(1, 90),
        )  # fmt: skip

    def paragraph(self, thing: str) -> str:
        return " ".join(self.sentence(thing) for _ in range(self._random.randint(3, 6)))

    def page(self, thing: str, *, sections: int) -> str:
        names = self._random.sample(_SECTIONS, sections)
        parts = [f"# The {thing}", self.paragraph(thing)]
        for name in names:
            parts += [f"## {name}", self.paragraph(thing), self._aside(thing), self.paragraph(thing)]
        return "\n\n".join(parts) + "\n"

    def _aside(self, thing: str) -> str:
        return self._random.choice((self._list, self._code, self._table, self.paragraph))(thing)

    def _list(self, thing: str) -> str:
        return "\n".join(f"- {self.sentence(thing)}" for _ in range(self._random.randint(3, 6)))

    def _code(self, thing: str) -> str:
        name, choose = thing.replace(" ", "_"), self._random.choice
        calls = [f"{name}.{choose(_PARTS)}({choose(_PARTS)}={self._random.randint(1, 99)})" for _ in range(4)]
        return "```python\n" + "\n".join([f"from depot import {name}", "", *calls]) + "\n```"

    def _table(self, _thing: str) -> str:
        choose = self._random.choice
        rows = [f"| {choose(_PARTS)} | {choose(_QUALITIES)} | {self._random.randint(1, 500)} |" for _ in range(5)]
        return "\n".join(["| setting | state | default |", "|---|---|---|", *rows])


def things() -> list[str]:
    """What the pages are about: a name for each, enough for 600 of them."""
    return [f"{material} {kind}" for kind, material in product(_KINDS, _MATERIALS)]


def write_book(folder: Path, *, pages: int, sections: int) -> Path:
    """Write the book, a folder for each kind of thing."""
    author = Author(seed=7)
    for number, thing in enumerate(things()[:pages]):
        chapter = folder / thing.split()[1]
        chapter.mkdir(parents=True, exist_ok=True)
        (chapter / f"{number:03d}-{thing.split()[0]}.md").write_text(
            author.page(thing, sections=sections), encoding="utf-8"
        )
    return folder

"""Defining: whether a question asks what something is, and whether a sentence says so.

A book says what a thing is once and names it a hundred times. By words and by meaning the hundred are as near to
"What is a winch?" as the one.
"""

from __future__ import annotations

import re
from functools import lru_cache

MOST_WORDS = 4
"""Of the thing. A longer one is rather something about a thing, such as the default size of a chunk."""

_ASKED = re.compile(
    r"\W*(?:(?:so|and|but|ok|okay|please|(?:can|could) you|tell me|explain|describe)\W+)*"
    r"(?:(?:what|who)(?:\s+exactly)?(?:['’]s|\s+(?:is|are|was|were))|what\s+(?:do|does)(?=.*\bmean\W*$)|define)\s+"
    r"(?:(?:an?|the)\s+)?(?P<thing>\S.*?)(?:\s+mean)?\W*",
    re.IGNORECASE,
)
_ABOUT_A_THING = re.compile(r"\b(?:of|for|in|on|at|to|from|with|by|between|when|if|that|which|and|or)\b", re.IGNORECASE)
_POINTING = frozenset("it they this that these those he she".split())
"""In a follow-up, what they stand for comes behind them: "What is it? Isaac Sim"."""
_SAYS = r"(?:is|are|was|were|means?|refers?\s+to|stands?\s+for|describes?|denotes?|represents?|serves?\s+as)\b"


@lru_cache(maxsize=256)
def definition_of(question: str) -> re.Pattern[str] | None:
    """What a sentence begins with that says what the question asks for; None when it asks for something else."""
    asked = _ASKED.fullmatch(question)
    thing = asked["thing"] if asked else ""
    words = [word for word in re.findall(r"\w+", thing) if word.lower() not in _POINTING]
    if not 0 < len(words) <= MOST_WORDS or _ABOUT_A_THING.search(thing):
        return None
    # "A winch", "winches", "The Dunmore winch (1931)", "the drum with its rope (winch)".
    one = re.sub(r"(?<=\w{3})(?:(?<=[sxz])es|(?<=[cs]h)es|s)$", "", words[-1])
    name = r"\W+".join(map(re.escape, [*words[:-1], one])) + "(?:e?s){0,2}"
    named = rf"(?:\w+[ -]){{0,2}}{name}(?:\s*\([^()]*\))?|[^.:;]{{2,80}}\({name}\)"
    return re.compile(rf"\W*(?:(?:an?|the)\s+)?(?:{named})[\"”’'*_`]*,?\s+(?:\w+ly\s+)?{_SAYS}", re.IGNORECASE)

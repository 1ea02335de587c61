"""Rewriting a follow-up with a model: the prompt, and the checks on the model's answer."""

import re
from collections.abc import Sequence
from pathlib import Path

from bythebook.chunking.sentences import split_sentences
from bythebook.conversations import Count
from bythebook.conversations.followups import Exchange, StandaloneQuestion
from bythebook.conversations.followups.lexicon import content_words, split_words, stem
from bythebook.conversations.followups.rules import (
    REMEMBERED,
    Dependence,
    classify_dependence,
    classify_fragment,
    make_standalone,
)
from bythebook.conversations.models import Message

REWRITE_PROMPT = Path(__file__).with_name("rewrite_prompt.txt").read_text(encoding="utf-8").rstrip()

BUDGET = 1200
"""Token budget of the prompt."""
LONGEST_ANSWER = 400
"""Characters of each earlier answer in the prompt: the beginning names the subject."""
LONGEST_REWRITE = 200
"""Maximum characters of a rewrite, unless the reader's question is longer."""
LONGEST_SEARCH = 12
"""Maximum words of a rewrite that is a keyword query instead of a question."""

_THOUGHT = re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL | re.IGNORECASE)
_LABEL = re.compile(
    r"^[\s>*#-]*(?:here is |here's )?(?:the |a )?"
    r"(?:(?:stand-?\s?alone|rewritten|rephrased|reformulated|revised|last|final)\s+)?"
    r"(?:question|query|rewrite|version|answer|output)\b[^:\n]{0,40}:[\s*]*",
    re.IGNORECASE,
)
_DECLINED = re.compile(
    r"\b(?:i'm sorry|i am sorry|i apologi[sz]e|i can(?:no|')t (?:help|assist|answer|rewrite|do)|as an ai|"
    r"i don't have (?:any |enough )?information|i'm unable|i am unable|not enough context|no rewrite)\b",
    re.IGNORECASE,
)
_ASKS = frozenset(
    """
    what which who whom whose where when why how is are was were do does did can could should would will may has have
    tell explain describe compare list show give name find define summarize summarise elaborate say
    """.split()
)
"""First words of a question or a request."""
_STATES = frozenset("is are was were has have had will can must should does means uses gives provides allows".split())
"""Verbs that mark a statement."""
_QUOTES = "\"'`*_“”‘’«» \t"


def rewrite_messages(
    question: str, history: Sequence[Exchange], *, count: Count, budget: int = BUDGET
) -> tuple[Message, Message]:
    """The prompt to rewrite `question`, with as many recent exchanges as fit the budget."""
    told = [_format_exchange(exchange) for exchange in history[-REMEMBERED:]]
    last = f"Last question: {_one_line(question)}"
    room = budget - count(REWRITE_PROMPT)
    while told and count("\n".join([*told, last])) > room:
        told.pop(0)
    return Message("system", REWRITE_PROMPT), Message("user", "\n".join([*told, last]))


def parse_rewrite(said: str, question: str, history: Sequence[Exchange]) -> StandaloneQuestion:
    """The model's rewrite, or the rule-based one if the model did not follow its instructions."""
    local = make_standalone(question, history)
    text = _strip_markup(said)
    if local.source or local.unclear:
        return local
    if split_words(text.lower()) == split_words(question.lower()):
        # The model returned the question unchanged, although it contains a pronoun that refers outside of it.
        return local if classify_fragment(question) else StandaloneQuestion(question, searches=(question,))
    if not _is_faithful(text, question, history):
        return local
    # Search for the reader's own words as well, in case the rewrite is wrong.
    searches = (question, text) if content_words(split_words(question)) else (text,)
    return StandaloneQuestion(text, depends=True, searches=searches)


def _format_exchange(exchange: Exchange) -> str:
    lines = [f"Reader: {_one_line(exchange.question)}"]
    if answer := _one_line(exchange.answer):
        lines.append(f"Book: {answer if len(answer) <= LONGEST_ANSWER else answer[:LONGEST_ANSWER] + '…'}")
    if exchange.sources:
        titles = (f"[{number}] {_one_line(title)}" for number, title in enumerate(exchange.sources, start=1))
        lines.append(f"Sources: {', '.join(titles)}")
    return "\n".join(lines)


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _strip_markup(said: str) -> str:
    """The first non-empty line, without reasoning tags, labels and quotation marks."""
    lines = (_LABEL.sub("", line).strip(_QUOTES) for line in _THOUGHT.sub("", said).splitlines())
    return next((line for line in lines if line), "")


def _is_faithful(text: str, question: str, history: Sequence[Exchange]) -> bool:
    """True if the text is a rewrite of the question, not an answer, an apology or another question."""
    if len(text) > max(LONGEST_REWRITE, 2 * len(question)) or _DECLINED.search(text):
        return False
    words = split_words(text)
    if (
        classify_dependence(words, ()) is Dependence.FIRMLY
        or not _is_question(words)
        or _sentences(text) > max(_sentences(question), 1)
    ):
        return False
    asked, terms = _stems(question), _stems(text)
    known = asked.union(*(_stems(" ".join([e.question, e.answer, *e.sources])) for e in history))
    said = terms & known
    return bool(said) and 2 * len(said) >= len(terms) and (not asked or bool(terms & asked))


def _is_question(words: Sequence[str]) -> bool:
    """True for a question, a request or a keyword query; false for a statement."""
    low = [word.lower() for word in words]
    if not low or low[-1] == "?" or low[0] in _ASKS:
        return bool(low)
    return len(low) <= LONGEST_SEARCH and not _STATES.intersection(low)


def _sentences(text: str) -> int:
    return sum(1 for _ in split_sentences(text))


def _stems(text: str) -> set[str]:
    return {stem(term) for term in content_words(split_words(text))}

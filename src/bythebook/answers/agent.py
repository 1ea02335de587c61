"""The agent: gets an answer from a model, by the way that suits the model."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING

from bythebook.answers import speaking
from bythebook.answers.budget import Budget, count
from bythebook.answers.chat import TurnModel
from bythebook.answers.reply import Reply
from bythebook.answers.spoken import Began, Question, Spoken
from bythebook.conversations.followups.rewriting import BUDGET as REWRITE_BUDGET
from bythebook.conversations.followups.rewriting import rewrite_messages, rewritten
from bythebook.conversations.followups.rule import standalone
from bythebook.errors import BookError, InputError
from bythebook.upstream.calls import unheard

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Sequence

    from bythebook.answers.chat import Endpoint
    from bythebook.answers.config import AgentConfig
    from bythebook.answers.speaking import Search
    from bythebook.conversations.followups import Exchange, Standalone
    from bythebook.passages import RetrievalResult
    from bythebook.upstream import CallReport, Deadline

REWRITE_TOKENS = 200
"""How long a question that was made to stand alone may be."""


class Speaker:
    """Speaks through one provider's model. Remembers when the model turns out not to call tools."""

    def __init__(self, config: AgentConfig, endpoint: Endpoint) -> None:
        self._config = config
        self._endpoint = endpoint
        self._calls_tools = endpoint.provider.calls_tools

    @property
    def model(self) -> str:
        return self._endpoint.provider.model

    @property
    def instructions(self) -> str:
        """What the model is told about its task."""
        return self._config.system_prompt

    async def speak(
        self,
        text: str,
        found: Sequence[RetrievalResult],
        *,
        history: Sequence[Exchange],
        search: Search,
        deadline: Deadline,
        report: Callable[[CallReport], None],
    ) -> AsyncGenerator[Began | str | Spoken]:
        """The words of the answer as they come, and at the end how it came about."""
        question = Question(text, self._config.system_prompt, tuple(history), self._budget())
        model = TurnModel(self._endpoint, deadline=deadline, report=report)
        spoken = Spoken()
        yield Began()
        async with aclosing(self._once(model, question, found, search=search, spoken=spoken)) as words:
            async for word in words:
                if isinstance(word, str):
                    model.begun()
                yield word
        spoken.tokens_used = model.prompt_tokens + model.completion_tokens
        yield spoken

    async def restate(
        self, question: str, history: Sequence[Exchange], *, deadline: Deadline
    ) -> tuple[Standalone, int]:
        """The question made to stand alone, and the tokens it took.

        One short call, tried once. A rule of ours stands in for whatever goes wrong with it: the answer is what the
        reader waits for.
        """
        budget = min(REWRITE_BUDGET, self._config.context_window - REWRITE_TOKENS)
        messages = rewrite_messages(question, history, count=count, budget=budget)
        if sum(count(message.content) for message in messages) > budget:
            return standalone(question, history), 0
        model = TurnModel(self._endpoint, deadline=deadline, report=unheard, attempts=1)
        said = ""
        asked = model.say([m.to_api_format() for m in messages], temperature=0.0, max_tokens=REWRITE_TOKENS)
        try:
            async with aclosing(asked) as heard:
                async for word in heard:
                    said = word.text if isinstance(word, Reply) else said
        except BookError:
            said = ""
        return rewritten(said, question, history), model.prompt_tokens + model.completion_tokens

    async def _once(
        self,
        model: TurnModel,
        question: Question,
        found: Sequence[RetrievalResult],
        *,
        search: Search,
        spoken: Spoken,
    ) -> AsyncGenerator[str | Began]:
        """By letting the model search, or with the passages in hand where it cannot or did not."""
        if self._config.retrieval_mode == "tool" or (self._config.retrieval_mode == "auto" and self._calls_tools):
            try:
                async with aclosing(speaking.with_search(model, question, search, spoken)) as words:
                    async for word in words:
                        yield word
            except InputError:
                # The provider has refused the request itself: a model without tools.
                self._calls_tools = False
            if spoken.searches and spoken.text:
                return
        numbered = spoken.shown.number(found)
        async with aclosing(speaking.with_passages(model, question, numbered, spoken)) as words:
            async for word in words:
                yield word

    def _budget(self) -> Budget:
        """The shares of the usual window, in proportion when the model's is smaller."""
        usual = Budget()
        scale = min(1.0, self._config.context_window / usual.window)
        return Budget(
            window=self._config.context_window,
            context=int(usual.context * scale),
            history=int(usual.history * scale),
            answer=self._config.max_tokens,
        )

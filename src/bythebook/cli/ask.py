"""`bythebook ask`: one question, one answer.

Its arguments are parsed here, without typer: importing typer takes about as long as finding the answer.
"""

import re
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from bythebook.answers import AgentRequest, AgentResponse
from bythebook.cli import console
from bythebook.cli.console import BaseUrl, DataDir, FilterOption, Json, Model, TopK
from bythebook.errors import InputError
from bythebook.index import Filters
from bythebook.models import GRANITE
from bythebook.models.runtime import start_loading
from bythebook.retrieval import RetrievalResult

_FENCE = re.compile(r"\s*(`{3,}|~{3,})")
_LINK = re.compile(r"- \[(.+)\]\((\S+)\)")
_BOLD = re.compile(r"\*\*(?=\S)(.+?)(?<=\S)\*\*")
_INLINE_CODE = re.compile(r"`([^`\n]+)`")
_INDENT = re.compile(r"\s*(?:(?:[-*+]|\d+[.)])\s+)?")
_MAX_WIDTH = 100
"""Longer lines are hard to read."""
_FLAGS = {"--json": "json", "--show-sources": "show_sources"}
_VALUES = {
    "--top-k": "top_k",
    "--threshold": "threshold",
    "--filter": "filters",
    "--data-dir": "data_dir",
    "--model": "model",
    "--base-url": "base_url",
}


class AskArguments(NamedTuple):
    """The arguments of `ask`."""

    question: str
    top_k: int | None = None
    threshold: str | None = None
    show_sources: bool = False
    filters: tuple[str, ...] = ()
    data_dir: Path | None = None
    json: bool = False
    model: str | None = None
    base_url: str | None = None


def parse_arguments(argv: Sequence[str]) -> AskArguments | None:
    """Parse the arguments of a plain `ask`. None if typer must handle them: other commands, help, and errors."""
    values: dict[str, Any] = {}
    if argv[:1] != ["ask"]:
        return None
    rest = iter(argv[1:])
    words: list[str] = []
    for argument in rest:
        name, _, value = argument.partition("=")
        if not argument.startswith("-"):
            words.append(argument)
        elif argument in _FLAGS:
            values[_FLAGS[argument]] = True
        elif name not in _VALUES or not _add_option(values, name, value or next(rest, "")):
            return None
    return AskArguments(_read_question(words), **values)


def _read_question(words: Sequence[str]) -> str:
    """The words of the command line, or a pipe if there are none. Raises InputError if there is neither."""
    if not words and (sys.stdin is None or sys.stdin.isatty()):
        raise InputError("ask needs a question, such as: bythebook ask where do I begin")
    return " ".join(words) or sys.stdin.read().strip()


def _add_option(values: dict[str, Any], option: str, value: str) -> bool:
    """Store the value of an option. False if the value is invalid."""
    name = _VALUES[option]
    if not value or value.startswith("-") or (name == "top_k" and not (value.isascii() and value.isdigit())):
        return False
    if name == "filters":
        values[name] = (*values.get(name, ()), value)
    else:
        values[name] = {"top_k": int, "data_dir": Path}.get(name, str)(value)
    return True


def answer(arguments: AskArguments, *, then: Callable[[], None] = lambda: None) -> None:
    """Print the answer, then call `then` before the book is closed."""
    settings = console.load_settings(
        data_dir=arguments.data_dir,
        retrieval_threshold=arguments.threshold,
        model=arguments.model,
        base_url=arguments.base_url,
    )
    filters = Filters.parse(arguments.filters)
    # A command ends after one answer; opening the database would delay it. `chat` has conversations.
    request = AgentRequest(arguments.question, top_k=arguments.top_k, filters=filters, store=False)
    console.require_book(settings)
    begun = start_loading(settings.model_folder, GRANITE)

    async def work() -> None:
        from bythebook.book import Book

        async with Book.open(settings, say=console.say, pending_session=begun) as book:
            book.defer_log_writes()
            _print_response(await book.ask(request), arguments)
            await book.flush()
            then()

    console.run(work())


def _print_response(response: AgentResponse, arguments: AskArguments) -> None:
    if arguments.json:
        console.print_json(response)
        return
    print_answer(response)
    if arguments.show_sources:
        console.echo("")
        print_passages(response.sources)


def print_answer(response: AgentResponse) -> None:
    """Print the answer, then each citation with its section and the URL that opens it at the quote."""
    console.echo("\n".join(_answer_lines(response)))


def _answer_lines(response: AgentResponse) -> Iterator[str]:
    yield from _style_markdown(response.answer)
    if response.citations:
        yield ""
    sections = {source.chunk_id: source.heading_hierarchy[1:] for source in response.sources}
    for citation in response.citations:
        title = " > ".join((citation.title, *sections.get(citation.chunk_id, ())))
        yield console.bold(console.link(f"[{citation.number}] {title}", citation.url))
        # A terminal shows the fragment with the quote only in the way.
        url = citation.url.partition(":~:")[0].rstrip("#") if sys.stdout.isatty() else citation.url
        yield console.dim(f"    {console.link(url, citation.url)}")


def _style_markdown(text: str) -> Iterator[str]:
    """The lines of an answer for a terminal: bold as such, each link as its title above its URL, code unchanged."""
    fence = ""
    for line in text.splitlines():
        mark = _FENCE.match(line)
        if fence or mark:
            fence = ("" if mark and line.strip() == fence else fence) if fence else mark[1] if mark else ""
            yield line
        elif link := _LINK.fullmatch(line):
            yield "- " + console.link(link[1].replace(r"\[", "[").replace(r"\]", "]"), link[2])
            yield console.dim(f"    {link[2]}")
        else:
            yield from map(_style_line, _wrap(line))


def _style_line(line: str) -> str:
    line = _BOLD.sub(lambda match: console.bold(match[1]), line)
    return _INLINE_CODE.sub(lambda match: console.code(match[0]), line)


def _wrap(line: str) -> list[str]:
    """The line in pieces that fit into the terminal. Tables, and what is printed elsewhere, stay as they are."""
    indent = _INDENT.match(line)
    if not sys.stdout.isatty() or indent is None or line.startswith("|"):
        return [line]
    width = min(shutil.get_terminal_size().columns, _MAX_WIDTH)
    following = " " * len(indent[0])
    return textwrap.wrap(line, width, subsequent_indent=following, break_long_words=False, break_on_hyphens=False) or [
        ""
    ]


def print_passages(results: Sequence[RetrievalResult]) -> None:
    """Print each passage with its heading path, URL and score."""
    for result in results:
        path = " > ".join(result.heading_hierarchy)
        address = f"{result.url}#{result.anchor}" if result.anchor else result.url
        console.echo(f"{console.bold(f'[{result.position}] {path}')}  {result.score:.3f}")
        console.echo(console.dim(address))
        console.echo(f"{result.text}\n")


def ask(
    question: Annotated[
        list[str] | None,
        typer.Argument(metavar="QUESTION", help="Your question, or none to read it from a pipe.", show_default=False),
    ] = None,
    top_k: TopK = None,
    threshold: Annotated[
        str | None, typer.Option(help="'auto', or the minimum cosine of an answer, from 0 to 1.")
    ] = None,
    show_sources: Annotated[bool, typer.Option("--show-sources", help="Also print the retrieved passages.")] = False,
    filters: FilterOption = None,
    model: Model = None,
    base_url: BaseUrl = None,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Answer a question from the book, or say that the book does not cover it.

    Example: bythebook ask where do I begin
    """
    arguments = AskArguments(
        _read_question(question or ()),
        top_k,
        threshold,
        show_sources,
        tuple(filters or ()),
        data_dir,
        json,
        model,
        base_url,
    )
    answer(arguments)

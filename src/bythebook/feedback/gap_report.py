"""The gap report as plain text for a terminal and as Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bythebook.feedback import GapReport, Topic

NOTHING = "The book has answered every question so far."


def format_text(report: GapReport) -> str:
    """The report as plain text."""
    return "\n".join(_text_lines(report)).rstrip()


def format_markdown(report: GapReport) -> str:
    """The report as Markdown. The text of readers is escaped."""
    return "\n".join(_markdown_lines(report)).rstrip()


def _text_lines(report: GapReport) -> Iterator[str]:
    yield _summary(report)
    for number, topic in enumerate(report.topics, start=1):
        yield ""
        yield f"{number}. {_one_line(topic.label)}  ({_times(topic.count)})"
        yield from (f"   {line}" for line in _details(topic))
    if report.foreign:
        yield from ("", "Not about this book:")
        yield from (f"   {_one_line(topic.label)}  ({_times(topic.count)})" for topic in report.foreign)
    if report.unclear:
        yield from ("", "Asked back, because they could not be understood:")
        yield from (f"   {_one_line(question)}" for question in report.unclear)


def _markdown_lines(report: GapReport) -> Iterator[str]:
    yield from ("# What the book does not answer", "", _summary(report), "")
    for topic in report.topics:
        yield from (f"## {_escape_markdown(topic.label)}", "", f"Asked {_times(topic.count)}.", "")
        yield from (f"- {_escape_markdown(line)}" for line in _details(topic))
        yield ""
    if report.foreign:
        yield from ("## Not about this book", "")
        yield from (f"- {_escape_markdown(topic.label)} ({_times(topic.count)})" for topic in report.foreign)
        yield ""
    if report.unclear:
        yield from ("## Asked back, because they could not be understood", "")
        yield from (f"- {_escape_markdown(question)}" for question in report.unclear)


def _summary(report: GapReport) -> str:
    if not report.questions:
        return NOTHING
    summary = (
        f"{_pluralize(report.questions, 'question')} without a good answer, {_pluralize(len(report.topics), 'topic')}."
    )
    if report.questions_left_out:
        summary += f" Only the latest {report.questions - report.questions_left_out} were looked at."
    if report.topics_left_out:
        summary += f" {_pluralize(report.topics_left_out, 'smaller topic')} not shown."
    if report.covered_since:
        summary += f" {_pluralize(report.covered_since, 'question')} answered since, by a newer generation of the book."
    return summary


def _details(topic: Topic) -> Iterator[str]:
    if topic.terms:
        yield f"words: {', '.join(topic.terms)}"
    yield from (f"also: {_one_line(example)}" for example in topic.examples[1:])
    if topic.rated_down:
        yield f"answered, but rated down: {_times(topic.rated_down)}"
    yield from (f"reason given: {_one_line(reason)}" for reason in topic.reasons)
    for section in topic.nearest:
        yield f"nearest: {section.name} ({section.score:.2f})"
    if topic.place:
        yield f"belongs in: {topic.place}"
        yield f"page: {topic.place.url}"


def _one_line(text: str) -> str:
    """The text on one line, without control characters."""
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())


def _escape_markdown(text: str) -> str:
    return "".join(f"\\{char}" if char in "\\`*_[]<>#|!~" else char for char in _one_line(text))


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _pluralize(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"

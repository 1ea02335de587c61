"""The gaps as a person reads them: plain text for a terminal, Markdown for a ticket or a page."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bythebook.feedback import GapReport, Topic

NOTHING = "The book has answered every question so far."


def as_text(report: GapReport) -> str:
    """The report for a terminal."""
    return "\n".join(_text(report)).rstrip()


def as_markdown(report: GapReport) -> str:
    """The report for a page. What readers wrote stands there as text and is no Markdown."""
    return "\n".join(_markdown(report)).rstrip()


def _text(report: GapReport) -> Iterator[str]:
    yield _summary(report)
    for number, topic in enumerate(report.topics, start=1):
        yield ""
        yield f"{number}. {_line(topic.label)}  ({_times(topic.count)})"
        yield from (f"   {line}" for line in _details(topic))
    if report.foreign:
        yield from ("", "Not about this book:")
        yield from (f"   {_line(topic.label)}  ({_times(topic.count)})" for topic in report.foreign)
    if report.unclear:
        yield from ("", "Asked back, because they could not be understood:")
        yield from (f"   {_line(question)}" for question in report.unclear)


def _markdown(report: GapReport) -> Iterator[str]:
    yield from ("# What the book does not answer", "", _summary(report), "")
    for topic in report.topics:
        yield from (f"## {_escaped(topic.label)}", "", f"Asked {_times(topic.count)}.", "")
        yield from (f"- {_escaped(line)}" for line in _details(topic))
        yield ""
    if report.foreign:
        yield from ("## Not about this book", "")
        yield from (f"- {_escaped(topic.label)} ({_times(topic.count)})" for topic in report.foreign)
        yield ""
    if report.unclear:
        yield from ("## Asked back, because they could not be understood", "")
        yield from (f"- {_escaped(question)}" for question in report.unclear)


def _summary(report: GapReport) -> str:
    if not report.questions:
        return NOTHING
    said = f"{_counted(report.questions, 'question')} without a good answer, {_counted(len(report.topics), 'topic')}."
    if report.questions_left_out:
        said += f" Only the latest {report.questions - report.questions_left_out} were looked at."
    if report.topics_left_out:
        said += f" {_counted(report.topics_left_out, 'smaller topic')} not shown."
    if report.covered_since:
        said += f" {_counted(report.covered_since, 'question')} answered since, by a newer generation of the book."
    return said


def _details(topic: Topic) -> Iterator[str]:
    if topic.terms:
        yield f"words: {', '.join(topic.terms)}"
    yield from (f"also: {_line(example)}" for example in topic.examples[1:])
    if topic.rated_down:
        yield f"answered, but rated down: {_times(topic.rated_down)}"
    yield from (f"reason given: {_line(reason)}" for reason in topic.reasons)
    for section in topic.nearest:
        yield f"nearest: {section.name} ({section.score:.2f})"
    if topic.place:
        yield f"belongs in: {topic.place}"
        yield f"page: {topic.place.url}"


def _line(text: str) -> str:
    """The text on one line, without what would move a terminal's cursor."""
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())


def _escaped(text: str) -> str:
    return "".join(f"\\{char}" if char in "\\`*_[]<>#|!~" else char for char in _line(text))


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"

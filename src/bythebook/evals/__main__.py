"""Measure the book on collections of questions.

python -m bythebook.evals retrieval FOLDER ...              how well the right documents are found
python -m bythebook.evals answers FOLDER ...                how often the answers contain the right words
python -m bythebook.evals refusal FOLDER                    half of the documents are left out; their questions
                                                            must be refused
python -m bythebook.evals refusal FOLDER --strangers OTHER  another collection's questions must be refused
python -m bythebook.evals refusal FOLDER --fit              also the weights that would tell them apart best
python -m bythebook.evals conversations FOLDER ...          the same for the last questions of conversations
python -m bythebook.evals followups FOLDER ...              how well a question of a conversation is made stand-alone
python -m bythebook.evals proof FILE ...                    how well supported claims are told from others
python -m bythebook.evals proof FILE ... --fit              the weights that would tell them apart best
python -m bythebook.evals gaps FOLDER ...                   how well unanswered questions come together by topic
python -m bythebook.evals quick FOLDER                      a few minutes of all this, on the collections in a folder
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from bythebook.cli.doing import FAILED, INTERRUPTED, WRONG, complain, echo, say, showing_progress
from bythebook.errors import BookError, ConfigurationError, InputError
from bythebook.evals.measures import MEASURES, Wanted

if TYPE_CHECKING:
    from collections.abc import Iterator

QUICK = (
    ("answers", "squad2", 100),
    ("refusal", "squad2", 100),
    ("conversations", "mtrag_un", 100),
    ("followups", "canard_dev", 1000),
    ("followups", "trec_cast", 1000),
    ("proof", "wice/pairs.jsonl.gz", 300),
)
"""What `quick` measures: each by its name, on a collection of the folder, with so many questions."""


def main() -> None:
    options = _options()
    try:
        for what, wanted in _runs(options):
            _report(what, wanted, as_json=options.json)
    except KeyboardInterrupt:
        say("Interrupted. What was embedded is kept.")
        sys.exit(INTERRUPTED)
    except BookError as error:
        complain(error, as_object=options.json)
        sys.exit(WRONG if isinstance(error, InputError | ConfigurationError) else FAILED)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bythebook.evals", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=[*MEASURES, "quick"])
    parser.add_argument("folders", nargs="+", type=Path, help="folders with questions, or files with pairs")
    parser.add_argument("--limit", type=int, default=sys.maxsize, help="ask only so many questions of each kind")
    parser.add_argument("--seed", type=int, default=1, help="which questions, when there are more")
    parser.add_argument("--strangers", type=Path, help="a collection whose questions must be refused")
    parser.add_argument("--fit", action="store_true", help="also fit the rule to these questions")
    parser.add_argument("--json", action="store_true", help="one JSON object for each collection")
    options = parser.parse_args()
    if options.limit < 1:
        parser.error("--limit must be at least 1")
    return options


def _runs(options: argparse.Namespace) -> Iterator[tuple[str, Wanted]]:
    """What to measure, one after the other."""
    folders = tuple(options.folders)
    for folder in folders:
        if not folder.exists():
            raise InputError(f"there is no {str(folder)!r}. docs/quality.md says where the collections come from.")
    wanted = Wanted(
        folders, lambda *_: None, limit=options.limit, seed=options.seed, strangers=options.strangers, fit=options.fit
    )
    if options.what == "quick":
        yield from _quick(wanted)
    elif options.what == "proof" and options.fit:
        yield options.what, wanted  # weights are fitted to all collections together
    else:
        yield from ((options.what, replace(wanted, folders=(folder,))) for folder in folders)


def _quick(wanted: Wanted) -> Iterator[tuple[str, Wanted]]:
    for what, collection, most in QUICK:
        path = wanted.folder / collection
        if path.exists():
            yield what, replace(wanted, folders=(path,), limit=min(most, wanted.limit))
        else:
            say(f"{what}: there is no {str(path)!r}, so this is not measured.")


def _report(what: str, wanted: Wanted, *, as_json: bool) -> None:
    with showing_progress() as progress:
        figures = asyncio.run(_measured(what, replace(wanted, progress=progress)))
    if as_json:
        echo(json.dumps(figures))
    else:
        echo(_text(figures))


async def _measured(what: str, wanted: Wanted) -> dict[str, object]:
    folder = wanted.folder
    collection = folder.name if folder.is_dir() else folder.parent.name
    return {"measure": what, "collection": collection, **await MEASURES[what](wanted)}


def _text(figures: dict[str, object]) -> str:
    title = f"{figures.pop('measure')} {figures.pop('collection')}"
    return "\n".join([title, *_lines(figures), ""])


def _lines(figures: dict[str, object], above: str = "") -> Iterator[str]:
    """Each figure on a line of its own, one inside of others with their name in front."""
    for name, value in figures.items():
        if isinstance(value, dict):
            yield from _lines(value, f"{above}{name}.")
        else:
            yield f"  {above + name:<28} {value}"


if __name__ == "__main__":
    main()

"""The sentences of a model with their verification, for human judgement.

python -m bench.sentences FOLDER QUESTIONS --base-url URL --model NAME > judged.md

FOLDER is a folder of pages, QUESTIONS a file with a question on each line. Every sentence of the model is printed with
what became of it, its confidence, the reason, and the quotes it rests on or the passages it was held against.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from bythebook import AgentRequest, Book, Settings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bythebook import AgentResponse

PASSAGES = 3
"""The number that a small model on one thread can process in time."""
PATIENT = 900.0


async def ask(given: argparse.Namespace) -> None:
    settings = Settings.load(
        {
            "data_dir": given.data_dir,
            "base_url": given.base_url,
            "model": given.model,
            "first_token_seconds": PATIENT,
            "answer_seconds": PATIENT,
            "temperature": 0.0,
            "max_tokens": 220,
        }
    )
    questions = [line.strip() for line in given.questions.read_text(encoding="utf-8").splitlines() if line.strip()]
    async with Book.open(settings) as book:
        await book.ingest(given.folder)
        examiner = book.evaluation_pipeline()
        for number, question in enumerate(questions, start=1):
            response = await examiner.ask(AgentRequest(question, top_k=PASSAGES))
            print("\n".join(written(number, question, response)), flush=True)
            print(f"{number}/{len(questions)} {question} {response.outcome}", file=sys.stderr)


def written(number: int, question: str, response: AgentResponse) -> Iterator[str]:
    """Format one answer."""
    yield f"\n## {number}. {question}\n"
    coverage, proven = response.metadata.coverage or 0, response.metadata.proven or 0
    yield f"{response.outcome}, {response.model}, coverage {coverage:.2f}, proven {proven:.2f}"
    for sentence in response.metadata.proof:
        yield f"\n- **{sentence.verdict}** {' '.join(sentence.text.split())}"
        yield f"  - confidence {sentence.confidence:.2f}: {sentence.reason}; {'; '.join(sentence.checked)}"
        quotes = [citation.excerpt for citation in response.citations if citation.number in sentence.citations]
        yield from (f"  - “{quote}”" for quote in quotes)
    yield "\nPassages:\n"
    yield from (f"- {result.title}: {' '.join(result.text.split())}" for result in response.sources)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("questions", type=Path)
    parser.add_argument("--base-url", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--data-dir", type=Path)
    asyncio.run(ask(parser.parse_args()))


if __name__ == "__main__":
    main()

"""Loads the pairs that people labelled, cleans them, and turns pairs into token ids.

python -m training.data LABELLED TOKENIZER OUT.npz [--made MADE.jsonl]

LABELLED is the folder of `*.jsonl.gz` files that README.md names, TOKENIZER a `tokenizer.json`. With `--made` the pairs
of training/minimal_pairs.py are converted instead.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import random
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

LABELS = ("supported", "neutral", "contradicted", "not_supported")
"""`not_supported` is neutral or contradicted: some sets do not say which."""
SHARES = {
    "snli": 0.5,
    "cad_snli": 0.8,
    "dnc_megaveridicality": 0.12,
    "creak": 0.4,
    "breaking_nli": 0.35,
    "help": 0.6,
}
"""The share of a set that is used, where it is not all: captions and templates are far from a book's pages."""
MAX_TOKENS = 128
HELD_OUT = 50
"""One premise in this many is kept out of training."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A quote, a claim, and what the quote says about the claim."""

    origin: str
    quote: str
    claim: str
    label: str


def read_labelled(folder: Path) -> list[Pair]:
    """All pairs of the folder, without duplicates and without pairs that are labelled in two ways."""
    labels: dict[tuple[str, str], set[bool]] = defaultdict(set)
    pairs: dict[tuple[str, str], Pair] = {}
    for path in sorted(folder.glob("*.jsonl.gz")):
        for row in _rows(path):
            pair = _pair(row)
            key = (_normalize(pair.quote), _normalize(pair.claim))
            if not all(key) or key[0] == key[1]:
                continue
            labels[key].add(pair.label == "supported")
            pairs.setdefault(key, pair)
    return [pair for key, pair in pairs.items() if len(labels[key]) == 1]


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def _pair(row: dict[str, Any]) -> Pair:
    if row["set"] == "summedits":
        label = "supported" if row["label"] == "paraphrase" else "not_supported"
        return Pair("summedits", row["a"].strip(), row["b"].strip(), label)
    return Pair(row["set"], row["premise"].strip(), row["hypothesis"].strip(), row["label"])


def _normalize(text: str) -> str:
    return " ".join("".join(letter if letter.isalnum() else " " for letter in text.lower()).split())


def sample(pairs: Iterable[Pair], *, seed: int) -> list[Pair]:
    """The share of each set that `SHARES` gives, in random order."""
    chance = random.Random(seed)  # noqa: S311 - the same every time
    kept = [pair for pair in pairs if chance.random() < SHARES.get(pair.origin, 1.0)]
    chance.shuffle(kept)
    return kept


def is_held_out(quote: str) -> bool:
    """Whether pairs with this quote are kept out of training. The same for all pairs of one quote."""
    return int.from_bytes(hashlib.sha256(quote.encode()).digest()[:4]) % HELD_OUT == 0


def read_made(path: Path) -> list[Pair]:
    """The pairs that training/minimal_pairs.py wrote; their origin is the kind of change."""
    rows = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return [
        Pair(
            row["kind"],
            with_heading(row["quote"], row["heading"]),
            row["claim"],
            "supported" if row["label"] else "not_supported",
        )
        for row in rows
    ]


def with_heading(quote: str, heading: str) -> str:
    """The quote as the network reads it: after its heading path."""
    return f"{heading}: {quote}" if heading else quote


def encode(pairs: Sequence[Pair], tokenizer_file: Path) -> dict[str, np.ndarray[Any, Any]]:
    """Arrays: the token ids of all pairs one after the other, their lengths, labels and origins.

    A pair is `[CLS] claim [SEP] quote [SEP]`. Pairs of more than `MAX_TOKENS` are left out.
    """
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(tokenizer_file))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    encoded = tokenizer.encode_batch([(pair.claim, pair.quote) for pair in pairs])
    short = [(pair, found) for pair, found in zip(pairs, encoded, strict=True) if len(found.ids) <= MAX_TOKENS]
    origins = sorted({pair.origin for pair, _ in short})
    return {
        "ids": np.concatenate([np.array(found.ids, dtype=np.uint16) for _, found in short]),
        "lengths": np.array([len(found.ids) for _, found in short], dtype=np.int32),
        "claims": np.array([sum(kind == 0 for kind in found.type_ids) for _, found in short], dtype=np.int32),
        "labels": np.array([LABELS.index(pair.label) for pair, _ in short], dtype=np.int8),
        "origins": np.array([origins.index(pair.origin) for pair, _ in short], dtype=np.int16),
        "held_out": np.array([is_held_out(pair.quote) for pair, _ in short]),
        "names": np.array(origins),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("labelled", type=Path)
    parser.add_argument("tokenizer", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--made", type=Path)
    given = parser.parse_args()
    pairs = read_made(given.made) if given.made else sample(read_labelled(given.labelled), seed=1)
    arrays = encode(pairs, given.tokenizer)
    np.savez(given.out, allow_pickle=False, **arrays)
    lengths = arrays["lengths"]
    print(f"{len(lengths)} of {len(pairs)} pairs, {lengths.mean():.1f} tokens each")
    for number, name in enumerate(arrays["names"]):
        labels = arrays["labels"][arrays["origins"] == number]
        print(f"{name}: {len(labels)}, supported {(labels == 0).mean():.2f}")


if __name__ == "__main__":
    main()

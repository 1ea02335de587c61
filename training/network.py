"""MiniLM as a reader of two texts, in PyTorch, for training alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn import functional

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray

WIDTH, WIDE, ATTENTION_HEADS = 384, 1536, 12
EPSILON = 1e-12
HEADS = 2
DROPOUT = 0.1


class Layer(nn.Module):
    """One layer of BERT, named so that its weights go by their published names."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(WIDTH, WIDTH) for _ in range(3))
        self.joined = nn.Linear(WIDTH, WIDTH)
        self.first_norm = nn.LayerNorm(WIDTH, eps=EPSILON)
        self.wide = nn.Linear(WIDTH, WIDE)
        self.narrow = nn.Linear(WIDE, WIDTH)
        self.second_norm = nn.LayerNorm(WIDTH, eps=EPSILON)
        self.dropout = nn.Dropout(DROPOUT)

    def forward(self, values: Tensor, mask: Tensor) -> Tensor:
        rows, length, _ = values.shape
        shape = (rows, length, ATTENTION_HEADS, WIDTH // ATTENTION_HEADS)
        query, key, value = (part(values).view(shape).transpose(1, 2) for part in (self.query, self.key, self.value))
        seen = functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        seen = self.joined(seen.transpose(1, 2).reshape(rows, length, WIDTH))
        values = self.first_norm(values + self.dropout(seen))
        made = self.narrow(functional.gelu(self.wide(values)))
        return self.second_norm(values + self.dropout(made))


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
"""What the parts of a layer are called in the published weights."""
LEARNED = ("token.weight", "token.bias", "heads.weight", "heads.bias", "most")
"""The parts that have no published weights to begin with."""


class Reader(nn.Module):
    """Two texts in, for each head one number out, and for each token whether it is part of the answer.

    The embeddings stay as they were published, and so do the first few layers: the others learn. A sentence answers a
    question as its tokens do on average, and as the most answering of them does.
    """

    def __init__(self, weights: Mapping[str, NDArray[np.float32]], *, layers: int, frozen: int) -> None:
        super().__init__()
        self._frozen = frozen
        at = "embeddings."
        for name in ("word_embeddings", "position_embeddings", "token_type_embeddings"):
            self.register_buffer(name, torch.tensor(weights[f"{at}{name}.weight"]))
        self.norm = nn.LayerNorm(WIDTH, eps=EPSILON)
        self.layers = nn.ModuleList(Layer() for _ in range(layers))
        self.dropout = nn.Dropout(DROPOUT)
        self.token = nn.Linear(WIDTH, 1)
        self.heads = nn.Linear(WIDTH, HEADS)
        self.most = nn.Parameter(torch.full((HEADS,), 0.1))
        self._take(weights)

    def forward(self, ids: Tensor, types: Tensor, there: Tensor) -> tuple[Tensor, Tensor]:
        """Logits by pair and head, and by pair and token. `there` tells tokens from padding."""
        places = self.position_embeddings[: ids.shape[1]]
        values = self.word_embeddings[ids] + places + self.token_type_embeddings[types]
        values = self.dropout(self.norm(values))
        mask = there[:, None, None, :]
        with torch.no_grad():
            for layer in self.layers[: self._frozen]:
                values = layer(values, mask)
        for layer in self.layers[self._frozen :]:
            values = layer(values, mask)
        values = values.float()
        tokens = self.token(values)[:, :, 0].masked_fill(~there, -30.0)
        weighs = there[:, :, None].float()
        mean = (values * weighs).sum(1) / weighs.sum(1)
        return self.heads(self.dropout(mean)) + self.most * tokens.max(1).values[:, None], tokens

    def _take(self, weights: Mapping[str, NDArray[np.float32]]) -> None:
        found = {f"norm.{kind}": weights[f"embeddings.LayerNorm.{kind}"] for kind in ("weight", "bias")}
        for number in range(len(self.layers)):
            for own, published in PUBLISHED.items():
                for kind in ("weight", "bias"):
                    found[f"layers.{number}.{own}.{kind}"] = weights[f"encoder.layer.{number}.{published}.{kind}"]
        nn.init.zeros_(self.heads.bias)
        for head in (self.heads, self.token):
            nn.init.normal_(head.weight, std=0.02)
        found |= {name: weights[name] for name in LEARNED if name in weights}
        self.load_state_dict({name: torch.tensor(value) for name, value in found.items()}, strict=False)
        for fixed in (self.norm, *self.layers[: self._frozen]):
            fixed.requires_grad_(False)

    def published(self) -> dict[str, NDArray[np.float32]]:
        """What was learned, by the published names; the heads by their own."""
        state = {name: value.detach().numpy() for name, value in self.state_dict().items()}
        found = {
            f"encoder.layer.{number}.{published}.{kind}": state[f"layers.{number}.{own}.{kind}"]
            for number in range(len(self.layers))
            for own, published in PUBLISHED.items()
            for kind in ("weight", "bias")
        }
        return {**found, **{name: state[name] for name in LEARNED}}

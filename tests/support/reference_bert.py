"""A reference implementation of BERT in numpy, written from the paper and independent of the exported graphs."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    Array = NDArray[np.float64]

erf = np.vectorize(math.erf, otypes=[np.float64])


def random_weights(
    seed: int, *, words: int = 320, positions: int = 512, layers: int = 6
) -> dict[str, NDArray[np.float32]]:
    """Random weights in MiniLM's shape with a small vocabulary, of the magnitude of trained ones."""
    random = np.random.default_rng(seed)

    def normal(*shape: int, around: float = 0.0, spread: float = 0.05) -> NDArray[np.float32]:
        return (around + spread * random.standard_normal(shape)).astype(np.float32)

    sizes = {"word": words, "position": positions, "token_type": 2}
    weights = {f"embeddings.{name}_embeddings.weight": normal(size, 384) for name, size in sizes.items()}
    norms = ["embeddings.LayerNorm"]
    for layer in (f"encoder.layer.{number}" for number in range(layers)):
        dense = {f"attention.self.{part}": (384, 384) for part in ("query", "key", "value")}
        dense |= {"attention.output.dense": (384, 384), "intermediate.dense": (1536, 384), "output.dense": (384, 1536)}
        for name, shape in dense.items():
            weights[f"{layer}.{name}.weight"] = normal(*shape)
            weights[f"{layer}.{name}.bias"] = normal(shape[0])
        norms += [f"{layer}.attention.output.LayerNorm", f"{layer}.output.LayerNorm"]
    for name in norms:
        weights[f"{name}.weight"], weights[f"{name}.bias"] = normal(384, around=1.0), normal(384)
    return weights


def hidden_states(
    weights: Mapping[str, NDArray[np.float32]], ids: Sequence[int], *, first_position: int = 0, second: int = 0
) -> Array:
    """The last layer. Positions begin at `first_position`; the last `second` tokens are of a second text."""
    w = {name: tensor.astype(np.float64) for name, tensor in weights.items()}

    def dense(x: Array, name: str) -> Array:
        made: Array = x @ w[f"{name}.weight"].T + w[f"{name}.bias"]
        return made

    def norm(x: Array, name: str) -> Array:
        centred = x - x.mean(-1, keepdims=True)
        scaled = centred / np.sqrt(centred.var(-1, keepdims=True) + 1e-12)
        normed: Array = scaled * w[f"{name}.weight"] + w[f"{name}.bias"]
        return normed

    positions = w["embeddings.position_embeddings.weight"][first_position : first_position + len(ids)]
    kinds = [0] * (len(ids) - second) + [1] * second
    x = w["embeddings.word_embeddings.weight"][list(ids)] + positions
    x = norm(x + w["embeddings.token_type_embeddings.weight"][kinds], "embeddings.LayerNorm")
    layers = sum(name.endswith("intermediate.dense.bias") for name in weights)
    for layer in (f"encoder.layer.{number}" for number in range(layers)):
        parts = [dense(x, f"{layer}.attention.self.{part}") for part in ("query", "key", "value")]
        query, key, value = (part.reshape(len(ids), 12, 32).transpose(1, 0, 2) for part in parts)
        likeness = np.exp(query @ key.transpose(0, 2, 1) / math.sqrt(32))
        seen = likeness / likeness.sum(-1, keepdims=True) @ value
        attended = dense(seen.transpose(1, 0, 2).reshape(len(ids), 384), f"{layer}.attention.output.dense")
        x = norm(attended + x, f"{layer}.attention.output.LayerNorm")
        wide = dense(x, f"{layer}.intermediate.dense")
        bent = wide * 0.5 * (1 + erf(wide / math.sqrt(2)))
        x = norm(dense(bent, f"{layer}.output.dense") + x, f"{layer}.output.LayerNorm")
    return x


def unit(vector: Array) -> Array:
    found: Array = vector / np.linalg.norm(vector)
    return found

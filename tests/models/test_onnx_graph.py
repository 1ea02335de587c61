from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime  # type: ignore[import-untyped]
import pytest
from numpy.typing import NDArray

from bythebook.errors import ConfigurationError
from bythebook.models.conversion import (
    CROSS_ENCODER_SHAPE,
    GRANITE_SHAPE,
    MINILM_SHAPE,
    embedding_graph,
    reranker_graph,
)
from bythebook.models.onnx_graph import (
    Architecture,
    GraphBuilder,
    Int8Arithmetic,
    OnnxGraph,
    quantize_matrix,
)
from tests.support import reference_bert
from tests.support.reference_bert import unit
from training.graphs import Float32Arithmetic

Arithmetic = type[Int8Arithmetic] | type[Float32Arithmetic]
EXACT: list[object] = [
    pytest.param(Float32Arithmetic, 1e-5, id="floats"),
    pytest.param(Int8Arithmetic, 0.01, id="bytes"),
]
"""The kinds of graphs, with the distance that each may have from the reference."""


def run(written: OnnxGraph, folder: Path, ids: Sequence[int]) -> NDArray[np.float32]:
    """The first output of the graph."""
    (folder / "graph.onnx").write_bytes(written.graph)
    (folder / "constants.bin").write_bytes(written.constants)
    session: Any = onnxruntime.InferenceSession(folder / "graph.onnx", providers=["CPUExecutionProvider"])
    found: NDArray[np.float32] = session.run(None, {"ids": np.array([ids], dtype=np.int64)})[0]
    return found


@pytest.fixture(scope="module")
def weights() -> dict[str, NDArray[np.float32]]:
    return reference_bert.random_weights(seed=1, positions=514)


@pytest.mark.parametrize("length", [1, 17, 256])
@pytest.mark.parametrize(("arithmetic", "distance"), EXACT)
def test_the_mean_agrees_with_a_reference_implementation_of_bert(
    tmp_path: Path, weights: dict[str, NDArray[np.float32]], length: int, arithmetic: Arithmetic, distance: float
) -> None:
    ids = np.random.default_rng(length).integers(0, 300, length).tolist()
    expected = unit(reference_bert.hidden_states(weights, ids).mean(0))

    found = run(embedding_graph(weights, MINILM_SHAPE, pool="mean", arithmetic=arithmetic), tmp_path, ids)

    assert 1 - expected @ found[0] < distance


@pytest.mark.parametrize(("arithmetic", "distance"), EXACT)
def test_the_first_state_agrees_with_positions_from_two(
    tmp_path: Path, weights: dict[str, NDArray[np.float32]], arithmetic: Arithmetic, distance: float
) -> None:
    ids = [0, *np.random.default_rng(9).integers(0, 300, 40).tolist(), 2]
    expected = unit(reference_bert.hidden_states(weights, ids, first_position=2)[0])

    found = run(embedding_graph(weights, GRANITE_SHAPE, pool="first", arithmetic=arithmetic), tmp_path, ids)

    assert 1 - expected @ found[0] < distance


def test_columns_that_are_far_larger_are_multiplied_exactly(tmp_path: Path) -> None:
    """One activation of 300 among others of 1 leaves the others three of the 256 steps."""
    matrix = np.random.default_rng(5).standard_normal((384, 96)).astype(np.float32)
    values = np.random.default_rng(6).standard_normal((1, 1, 384)).astype(np.float32)
    values[0, 0, 7] = 300
    errors = []
    for exact in ((), (7,)):
        graph = GraphBuilder(constants_file="constants.bin")
        shifted = graph.add(
            "Add",
            graph.add("Mul", graph.add("Cast", "ids", to=1), graph.constant(np.zeros(1, dtype=np.float32))),
            graph.constant(values),
        )
        product = Int8Arithmetic(graph, heads=12).dense(shifted, matrix, exact=exact)
        found = run(graph.finish({"product": (product, [1, 1, 96])}), tmp_path, [0])
        errors.append(float(np.abs(found[0, 0] - values[0, 0] @ matrix).mean()))

    assert errors[1] < errors[0] / 20


def test_the_reranker_reads_two_texts(tmp_path: Path) -> None:
    shape = Architecture(layers=2, max_tokens=64, separator=CROSS_ENCODER_SHAPE.separator)
    weights = reference_bert.random_weights(seed=2, layers=2)
    random = np.random.default_rng(2)
    for name, rows in (("pooler.dense", 384), ("classifier", 1)):
        weights[f"{name}.weight"] = 0.1 * random.standard_normal((rows, 384)).astype(np.float32)
        weights[f"{name}.bias"] = random.standard_normal(rows).astype(np.float32)
    question, passage = [101, 5, 9, 102], [30, 40, 50, 60, 102]
    first = reference_bert.hidden_states(weights, [*question, *passage], second=len(passage))[0]
    pooled = np.tanh(first @ weights["pooler.dense.weight"].T + weights["pooler.dense.bias"])
    expected = pooled @ weights["classifier.weight"].T + weights["classifier.bias"]

    found = run(reranker_graph(weights, shape), tmp_path, [*question, *passage])

    assert found == pytest.approx(expected, abs=0.2)


def test_the_export_is_deterministic(weights: dict[str, NDArray[np.float32]]) -> None:
    made = [embedding_graph(weights, GRANITE_SHAPE, pool="first") for _ in range(2)]

    assert made[0] == made[1]


def test_names_the_tensor_that_another_model_lacks(weights: dict[str, NDArray[np.float32]]) -> None:
    other = {name: tensor for name, tensor in weights.items() if name != "encoder.layer.5.output.dense.bias"}

    with pytest.raises(ConfigurationError, match=r"they lack 'encoder\.layer\.5\.output\.dense\.bias'"):
        embedding_graph(other, MINILM_SHAPE, pool="mean")


def test_quantisation_errs_by_at_most_half_a_step_and_keeps_zeros() -> None:
    matrix = np.random.default_rng(0).standard_normal((40, 30)).astype(np.float32)
    matrix[:, 7] = 0

    numbers, scale = quantize_matrix(matrix, axis=0, limit=64)

    assert np.abs(numbers).max() == 64
    assert (np.abs(numbers * scale - matrix) <= scale * 0.5001).all()
    assert not numbers[:, 7].any()

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import onnxruntime  # type: ignore[import-untyped]
import pytest
from tokenizers import Tokenizer

from bythebook.embeddings.minilm import download as published
from bythebook.embeddings.minilm.onnx_export import full_graph, quantize_matrix, quantized_graph, read_tensors
from bythebook.errors import ConfigurationError
from tests.support import reference_bert
from tests.support.model_weights import published_source

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from bythebook.embeddings.minilm.onnx_export import OnnxGraph

TEXTS = (
    "How do I install the package on Windows?",
    "The middleware provides hardware abstraction, device drivers and message passing between processes.",
    "A mitochondrion is an organelle found in the cells of most eukaryotes; it makes most of the cell's ATP.",
    "`pip install -e .[dev]` puts the project into the environment, so that changes to its source show at once.",
    "Der schnelle braune Fuchs springt über den faulen Hund.",
    "In 1066 William of Normandy defeated Harold at Hastings. " * 12,
)


def opened(written: OnnxGraph, folder: Path) -> Any:
    folder.mkdir()
    (folder / "graph.onnx").write_bytes(written.graph)
    (folder / "constants.bin").write_bytes(written.constants)
    return onnxruntime.InferenceSession(folder / "graph.onnx", providers=["CPUExecutionProvider"])


def run(session: Any, ids: Sequence[int]) -> NDArray[np.float32]:
    vector: NDArray[np.float32] = session.run(None, {"ids": np.array([ids], dtype=np.int64)})[0][0]
    return vector


@pytest.fixture(scope="module")
def weights() -> dict[str, NDArray[np.float32]]:
    return reference_bert.random_weights(seed=1)


@pytest.mark.parametrize("length", [1, 17, 256])
def test_both_graphs_agree_with_a_reference_implementation_of_bert(
    tmp_path: Path, weights: dict[str, NDArray[np.float32]], length: int
) -> None:
    ids = np.random.default_rng(length).integers(0, 300, length).tolist()
    expected = reference_bert.embed(weights, ids)

    full = run(opened(full_graph(weights, constants_file="constants.bin"), tmp_path / "full"), ids)
    quantized = run(opened(quantized_graph(weights, constants_file="constants.bin"), tmp_path / "bytes"), ids)

    assert np.abs(full - expected).max() < 1e-5
    assert expected @ quantized > 0.99


def test_the_export_is_deterministic(weights: dict[str, NDArray[np.float32]]) -> None:
    assert quantized_graph(weights, constants_file="c") == quantized_graph(weights, constants_file="c")


def test_names_the_tensor_that_another_model_lacks(weights: dict[str, NDArray[np.float32]]) -> None:
    other = {name: tensor for name, tensor in weights.items() if name != "encoder.layer.5.output.dense.bias"}

    with pytest.raises(
        ConfigurationError, match=r"all-MiniLM-L6-v2: they lack 'encoder\.layer\.5\.output\.dense\.bias'"
    ):
        quantized_graph(other, constants_file="c")


def test_quantisation_errs_by_at_most_half_a_step_and_keeps_zeros() -> None:
    matrix = np.random.default_rng(0).standard_normal((40, 30)).astype(np.float32)
    matrix[:, 7] = 0

    numbers, scale = quantize_matrix(matrix, axis=0, limit=64)

    assert np.abs(numbers).max() == 64
    assert (np.abs(numbers * scale - matrix) <= scale * 0.5001).all()
    assert not numbers[:, 7].any()


def test_quantised_published_weights_keep_their_similarities(tmp_path: Path) -> None:
    source = published_source()
    weights = read_tensors(published.read_published_file(source, published.WEIGHTS))
    tokenizer = Tokenizer.from_str(published.read_published_file(source, published.TOKENIZER).decode())
    tokenizer.no_padding()
    tokenizer.enable_truncation(256)
    full = opened(full_graph(weights, constants_file="constants.bin"), tmp_path / "full")
    quantized = opened(quantized_graph(weights, constants_file="constants.bin"), tmp_path / "bytes")

    likeness = [run(full, ids) @ run(quantized, ids) for ids in (tokenizer.encode(text).ids for text in TEXTS)]

    assert min(likeness) > 0.985
    assert np.mean(likeness) > 0.99

"""Converts published weights to quantised graphs. This module and those it imports need the `onnx` package."""

from collections.abc import Callable, Mapping

from bythebook.models import GRANITE, MINILM, RERANKER, ModelSpec
from bythebook.models.install import CONSTANTS, GRAPH, TOKENIZER
from bythebook.models.onnx_graph import (
    Architecture,
    Arithmetic,
    Encoder,
    GraphBuilder,
    Int8Arithmetic,
    OnnxGraph,
    Weights,
)
from bythebook.models.weights import read_pack, read_quantized_onnx, read_safetensors

SEPARATOR = 102
"""The token between two texts, in the vocabulary of BERT."""
MINILM_SHAPE = Architecture(layers=6, max_tokens=256)
GRANITE_SHAPE = Architecture(
    layers=6,
    max_tokens=512,
    first_position=2,
    exact_columns={
        "0.intermediate": (98, 283),
        "0.output": (573,),
        "1.intermediate": (334,),
        "1.output": (327,),
        "2.intermediate": (334,),
        "2.output": (885,),
        "3.intermediate": (140, 271, 334, 343),
        "3.output": (415, 768, 846, 1450),
        "4.output": (23, 52, 1271),
    },
)
"""The columns whose activations are up to 80 times the typical column's, found on the texts of three collections."""
CROSS_ENCODER_SHAPE = Architecture(layers=12, max_tokens=512, separator=SEPARATOR)


def convert(spec: ModelSpec, files: Mapping[str, bytes]) -> dict[str, bytes]:
    """The files of the converted model, by name."""
    return _CONVERSIONS[spec.name](files)


def _convert_granite(files: Mapping[str, bytes]) -> dict[str, bytes]:
    (pack,) = files.values()
    weights, tokenizer = read_pack(pack)
    return _serialize(embedding_graph(weights, GRANITE_SHAPE, pool="first"), tokenizer)


def _convert_minilm(files: Mapping[str, bytes]) -> dict[str, bytes]:
    weights = read_safetensors(files["model.safetensors"])
    return _serialize(embedding_graph(weights, MINILM_SHAPE, pool="mean"), files["tokenizer.json"])


def _convert_reranker(files: Mapping[str, bytes]) -> dict[str, bytes]:
    model, tokenizer = files.values()
    weights = read_quantized_onnx(model, layers=CROSS_ENCODER_SHAPE.layers)
    return _serialize(reranker_graph(weights, CROSS_ENCODER_SHAPE), tokenizer)


_CONVERSIONS: Mapping[str, Callable[[Mapping[str, bytes]], dict[str, bytes]]] = {
    GRANITE.name: _convert_granite,
    MINILM.name: _convert_minilm,
    RERANKER.name: _convert_reranker,
}


def _serialize(exported: OnnxGraph, tokenizer: bytes) -> dict[str, bytes]:
    return {GRAPH: exported.graph, CONSTANTS: exported.constants, TOKENIZER: tokenizer}


def embedding_graph(
    weights: Weights,
    shape: Architecture,
    *,
    pool: str,
    arithmetic: Callable[..., Arithmetic] = Int8Arithmetic,
) -> OnnxGraph:
    """A graph from token ids to a unit vector: the first state, or the mean of all."""
    graph = GraphBuilder(constants_file=CONSTANTS)
    encoder = Encoder(weights, shape, arithmetic(graph, heads=shape.heads))
    values = encoder.hidden_states()
    pooled = (
        encoder.first_state(values)
        if pool == "first"
        else graph.add("ReduceMean", values, graph.integers(1), keepdims=0)
    )
    return graph.finish({"vector": (graph.add("LpNormalization", pooled, axis=-1, p=2), [1, shape.width])})


def reranker_graph(weights: Weights, shape: Architecture) -> OnnxGraph:
    """A graph from the token ids of a question and a passage to the reranker's logit."""
    graph = GraphBuilder(constants_file=CONSTANTS)
    encoder = Encoder(weights, shape, Int8Arithmetic(graph, heads=shape.heads))
    pooled = graph.add("Tanh", encoder.linear(encoder.first_state(encoder.hidden_states()), "pooler.dense"))
    logit = graph.add("Reshape", encoder.linear(pooled, "classifier"), graph.integers(1))
    return graph.finish({"rank": (logit, [1])})

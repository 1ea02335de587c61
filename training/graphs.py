"""The graphs that only training, tests and benchmarks write: the entailment model's, and graphs in 32-bit floats."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bythebook.models import ENTAILMENT_TOKENS
from bythebook.models.conversion import SEPARATOR
from bythebook.models.install import CONSTANTS
from bythebook.models.onnx_graph import (
    Architecture,
    Arithmetic,
    Array,
    Encoder,
    GraphBuilder,
    Int8Arithmetic,
    OnnxGraph,
    Weights,
)

ENTAILMENT_SHAPE = Architecture(layers=12, max_tokens=ENTAILMENT_TOKENS, separator=SEPARATOR)


class Float32Arithmetic:
    """Slow and large: the reference for the other."""

    def __init__(self, graph: GraphBuilder, *, heads: int) -> None:
        self.graph = graph
        self._heads = heads

    def embed_words(self, table: Array, ids: str) -> str:
        return self.graph.add("Gather", self.graph.constant(table), ids)

    def dense(self, values: str, matrix: Array, *, exact: Sequence[int] = ()) -> str:  # noqa: ARG002 - all are exact
        return self.graph.add("MatMul", values, self.graph.constant(matrix))

    def attention(self, values: str, matrix: Array, bias: Array) -> str:
        constant = self.graph.constant
        return self.graph.add_fused("Attention", values, constant(matrix), constant(bias), num_heads=self._heads)


def entailment_graph(
    weights: Weights,
    *,
    shape: Architecture = ENTAILMENT_SHAPE,
    arithmetic: Callable[..., Arithmetic] = Int8Arithmetic,
) -> OnnxGraph:
    """A graph from the token ids of a claim and a quote to the log-odds that the quote supports the claim."""
    graph = GraphBuilder(constants_file=CONSTANTS)
    encoder = Encoder(weights, shape, arithmetic(graph, heads=shape.heads))
    pooled = graph.add("Tanh", encoder.linear(encoder.first_state(encoder.hidden_states()), "pooler.dense"))
    logits = encoder.linear(pooled, "classifier")
    supported = graph.add("Slice", logits, *map(graph.integers, (0, 1, 1)))
    others = graph.add("ReduceLogSumExp", graph.add("Slice", logits, *map(graph.integers, (1, 3, 1))), keepdims=0)
    return graph.finish(
        {"support": (graph.add("Sub", graph.add("Reshape", supported, graph.integers(1)), others), [1])}
    )

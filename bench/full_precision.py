"""The graph that embedding libraries run: the published weights in 32-bit floats, for batches of any size.

`python -m bench.full_precision FOLDER` fetches the weights if need be and writes `FOLDER/graph.onnx`.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import onnx

from bythebook.embeddings.minilm import download
from bythebook.embeddings.minilm.download import WEIGHTS, read_published_file
from bythebook.embeddings.minilm.onnx_export import full_graph, read_tensors

GRAPH, CONSTANTS = "graph.onnx", "constants.bin"


def write(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    given = os.environ.get("BYTHEBOOK_MODEL_SOURCE")
    source = Path(given) if given else download.fetch(folder)
    written = full_graph(read_tensors(read_published_file(source, WEIGHTS)), constants_file=CONSTANTS)
    model = onnx.load_model_from_string(written.graph)
    for value in (*model.graph.input, *model.graph.output):
        value.type.tensor_type.shape.dim[0].dim_param = "batch"
    (folder / CONSTANTS).write_bytes(written.constants)
    (folder / GRAPH).write_bytes(model.SerializeToString())


if __name__ == "__main__":
    target = Path(sys.argv[1])
    if not (target / GRAPH).exists():
        write(target)

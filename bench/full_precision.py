"""The graph that embedding libraries run: the published weights in 32-bit floats, for batches of any size.

`python -m bench.full_precision FOLDER` fetches the weights if need be and writes `FOLDER/graph.onnx`.
"""

import os
import sys
from pathlib import Path

import onnx

from bythebook.models import GRANITE
from bythebook.models.conversion import GRANITE_SHAPE, embedding_graph
from bythebook.models.install import CONSTANTS, GRAPH, fetch, read_published_file
from bythebook.models.weights import read_pack
from training.graphs import Float32Arithmetic


def write(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    given = os.environ.get("BYTHEBOOK_MODEL_SOURCE")
    source = Path(given) if given else fetch(folder, GRANITE)
    (path,) = GRANITE.files
    weights, _ = read_pack(read_published_file(source, path, GRANITE))
    written = embedding_graph(weights, GRANITE_SHAPE, pool="first", arithmetic=Float32Arithmetic)
    model = onnx.load_model_from_string(written.graph)
    for value in (*model.graph.input, *model.graph.output):
        value.type.tensor_type.shape.dim[0].dim_param = "batch"
    (folder / CONSTANTS).write_bytes(written.constants)
    (folder / GRAPH).write_bytes(model.SerializeToString())


if __name__ == "__main__":
    target = Path(sys.argv[1])
    if not (target / GRAPH).exists():
        write(target)

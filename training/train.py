"""Trains the evidence model on the processor. Needs PyTorch: see requirements.txt beside this file.

PYTHONPATH=src python -m training.train PAIRS.npz WEIGHTS OUT.npz [--minutes 20] [--epochs 2] [--layers 6] [--frozen 2]
    [--after EARLIER.npz]

WEIGHTS is the published `model.safetensors` of all-MiniLM-L6-v2. The rate falls to zero at the end, which comes after
so many minutes or so many epochs, whichever is sooner: how fast a shared processor is cannot be known before.
"""

from __future__ import annotations

import argparse
import copy
import queue
import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch.nn import functional

from bythebook.embeddings.minilm.onnx_export import read_tensors
from training.network import Reader

if TYPE_CHECKING:
    from torch import Tensor

RATE, HEAD_RATE = 1e-4, 1e-3
WARM = 0.06
TOKENS_AT_ONCE = 1600
TOKEN_LOSS = 0.5
SHOWN_EVERY = 20


@dataclass(frozen=True, slots=True)
class Batch:
    """Pairs of about the same length."""

    ids: Tensor
    types: Tensor
    there: Tensor
    heads: Tensor
    labels: Tensor
    marks: Tensor

    @property
    def tokens(self) -> int:
        return int(self.there.sum())


class Examples:
    """What `training.pairs` wrote."""

    def __init__(self, path: Path) -> None:
        with np.load(path) as found:
            self._lengths, self._seconds = found["lengths"], found["seconds"]
            self._heads, self._labels, self._marks = found["heads"], found["labels"], found["marks"]
            self._ids = np.split(found["ids"], np.cumsum(self._lengths)[:-1])

    def batches(self, chance: random.Random) -> list[Batch]:
        """All pairs once, in an order drawn by chance."""
        order = sorted(range(len(self._ids)), key=lambda place: self._lengths[place] + chance.uniform(-4, 4))
        groups: list[list[int]] = [[]]
        for place in order:
            if groups[-1] and (len(groups[-1]) + 1) * self._lengths[place] > TOKENS_AT_ONCE:
                groups.append([])
            groups[-1].append(place)
        chance.shuffle(groups)
        return [self._batch(group) for group in groups]

    def _batch(self, group: list[int]) -> Batch:
        lengths = torch.tensor(self._lengths[group])
        longest = int(lengths.max())
        places = torch.arange(longest)[None, :]
        ids = torch.zeros(len(group), longest, dtype=torch.int64)
        for row, place in enumerate(group):
            ids[row, : self._lengths[place]] = torch.from_numpy(self._ids[place])
        there = places < lengths[:, None]
        types = (there & (places >= torch.tensor(self._seconds[group])[:, None])).long()
        of = (torch.tensor(column[group]) for column in (self._heads, self._labels, self._marks))
        return Batch(ids, types, there, *of)


def loss_of(reader: Reader, batch: Batch) -> Tensor:
    """How wrong the heads are, and how wrong the tokens are where the words of the answer are known."""
    with torch.autocast("cpu", dtype=torch.bfloat16):
        logits, tokens = reader(batch.ids, batch.types, batch.there)
    own = logits.gather(1, batch.heads[:, None])[:, 0]
    loss = functional.binary_cross_entropy_with_logits(own, batch.labels)
    known = batch.marks[:, 0] >= 0
    if known.any():
        places = torch.arange(tokens.shape[1])[None, :]
        marked = ((places >= batch.marks[:, :1]) & (places < batch.marks[:, 1:])).float()[known]
        each = functional.binary_cross_entropy_with_logits(tokens[known], marked, reduction="none")
        # A pair has a few tokens of the answer among fifty: count by pairs, not by tokens.
        loss = loss + TOKEN_LOSS * (each * batch.there[known]).sum(1).mean() / 8
    return loss


class Course:
    """One training: the weights, what changes them, and how far it has come.

    Each worker has gradients of its own and shares the weights with the others. None waits for another, because on a
    shared processor the one that waits would lose its turn too.
    """

    def __init__(self, reader: Reader, *, steps: int, minutes: float) -> None:
        named = [(name, parameter) for name, parameter in reader.named_parameters() if parameter.requires_grad]
        old = [parameter for name, parameter in named if name.startswith("layers")]
        new = [parameter for name, parameter in named if not name.startswith("layers")]
        groups = [{"params": old, "lr": RATE, "most": RATE}, {"params": new, "lr": HEAD_RATE, "most": HEAD_RATE}]
        self._optimizer = torch.optim.AdamW(groups, weight_decay=0.01)
        self._reader = reader
        self._steps, self._seconds = steps, 60 * minutes
        self._started = time.monotonic()
        self._losses: list[float] = []
        self._tokens = 0
        self._turn = threading.Lock()

    @property
    def gone(self) -> float:
        """How much of it is over, from 0 to 1."""
        return max(len(self._losses) / self._steps, (time.monotonic() - self._started) / self._seconds)

    def work(self, batches: queue.SimpleQueue[Batch]) -> None:
        """Learn from one batch after the other until the course is over."""
        own = copy.deepcopy(self._reader)
        for parameter, shared in zip(own.parameters(), self._reader.parameters(), strict=True):
            parameter.data = shared.data
        while self.gone < 1:
            batch = batches.get()
            own.zero_grad(set_to_none=True)
            loss = loss_of(own, batch)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(own.parameters(), 1.0)
            with self._turn:
                self._step(own, loss.item(), batch.tokens)

    def _step(self, own: Reader, loss: float, tokens: int) -> None:
        for parameter, shared in zip(own.parameters(), self._reader.parameters(), strict=True):
            shared.grad = parameter.grad
        for group in self._optimizer.param_groups:
            group["lr"] = group["most"] * max(min(self.gone / WARM, (1 - self.gone) / (1 - WARM), 1.0), 0.0)
        self._optimizer.step()
        self._losses.append(loss)
        self._tokens += tokens
        if len(self._losses) % SHOWN_EVERY == 0:
            speed = self._tokens / (time.monotonic() - self._started)
            recent = sum(self._losses[-SHOWN_EVERY:]) / SHOWN_EVERY
            done = f"step {len(self._losses)} of {self._steps}, {self.gone:.0%}"
            print(f"{done}, loss {recent:.3f}, {self._tokens} tokens, {speed:.0f}/s", flush=True)


def train(reader: Reader, examples: Examples, *, minutes: float, epochs: int, workers: int) -> None:
    chance = random.Random(1)  # noqa: S311 - the same every time
    every = [batch for _ in range(epochs) for batch in examples.batches(chance)]
    batches: queue.SimpleQueue[Batch] = queue.SimpleQueue()
    for batch in every + every[:workers]:
        batches.put(batch)
    course = Course(reader, steps=len(every), minutes=minutes)
    with ThreadPoolExecutor(workers) as pool:
        for done in [pool.submit(course.work, batches) for _ in range(workers)]:
            done.result()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pairs", type=Path)
    parser.add_argument("weights", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--frozen", type=int, default=2, help="how many of the first layers stay as they are")
    parser.add_argument("--after", type=Path, help="go on from what an earlier run learned")
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    weights = read_tensors(given.weights.read_bytes())
    if given.after:
        weights |= np.load(given.after)
    reader = Reader(weights, layers=given.layers, frozen=given.frozen)
    train(reader, Examples(given.pairs), minutes=given.minutes, epochs=given.epochs, workers=given.workers)
    np.savez(given.out, **reader.published())


if __name__ == "__main__":
    main()

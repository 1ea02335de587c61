"""Trains the entailment network on encoded pairs; stops and continues at any time.

python -m training.train MODEL.onnx RUN PAIRS.npz[=SHARE] ... [--pairs N] [--decay N] [--rate PART] [--from CHECKPOINT]

MODEL is the reranker's file, or the graph of the package's entailment model. RUN is a folder for checkpoints. With
several files of pairs, SHARE is the part of the batches that come from each. A training that finds `RUN/last.pt`
continues from it, with the state of the optimizer; SIGTERM ends it with a checkpoint.
The learning rate rises, stays, and falls to zero over the last `--decay` pairs.
"""

from __future__ import annotations

import argparse
import copy
import os
import random
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from training.exported import is_exported, read_exported
from training.network import EntailmentNetwork, published
from training.reranker import read_reranker

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

RATE, HEAD_RATE = 6e-5, 3e-4
WARM_UP = 4000
"""Pairs over which the learning rate rises."""
BATCH_TOKENS = 1536
BUCKET = 40
"""Batches that are sorted by length together."""
SMOOTHING = 0.05
HALVES = torch.cpu._is_avx512_bf16_supported()
"""Products are in bfloat16 where the processor multiplies it: 1.4 times as fast."""
CHECKPOINT_SECONDS = 300
LOG_STEPS = 50
AVERAGE_STEPS, AVERAGE_KEPT = 10, 0.97
"""The weights that are written are an average: every so many steps it keeps this part of what it was."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Pairs of similar length, padded."""

    ids: Tensor
    kinds: Tensor
    present: Tensor
    labels: Tensor


class Pairs:
    """Encoded pairs, drawn without replacement, epoch after epoch."""

    def __init__(self, path: Path, *, seed: int) -> None:
        arrays = np.load(path)
        self._ids, self._lengths = arrays["ids"], arrays["lengths"]
        self._claims, self._labels = arrays["claims"], arrays["labels"]
        self._starts = np.concatenate([[0], np.cumsum(self._lengths)])
        self._chance = np.random.default_rng(seed)
        self._train = np.flatnonzero(~arrays["held_out"])
        self.held_out = np.flatnonzero(arrays["held_out"])
        self._queue: list[int] = []

    def draw(self, count: int) -> list[int]:
        while len(self._queue) < count:
            self._queue.extend(self._chance.permutation(self._train).tolist())
        drawn, self._queue = self._queue[:count], self._queue[count:]
        return drawn

    def length(self, number: int) -> int:
        return int(self._lengths[number])

    def batch(self, numbers: Sequence[int]) -> Batch:
        longest = max(self.length(number) for number in numbers)
        ids = np.zeros((len(numbers), longest), dtype=np.int64)
        kinds, present = np.zeros_like(ids), np.zeros(ids.shape, dtype=bool)
        for row, number in enumerate(numbers):
            length = self.length(number)
            ids[row, :length] = self._ids[self._starts[number] : self._starts[number] + length]
            kinds[row, self._claims[number] : length] = 1
            present[row, :length] = True
        labels = self._labels[np.array(numbers)].astype(np.int64)
        return Batch(*(torch.from_numpy(array) for array in (ids, kinds, present, labels)))

    def labels(self, numbers: Sequence[int]) -> np.ndarray[Any, Any]:
        return self._labels[np.array(numbers)]


def batches(sources: Sequence[tuple[Pairs, float]], *, chance: random.Random) -> Iterator[Batch]:
    """Batches of about `BATCH_TOKENS` without end, of each source its share."""
    while True:
        made: list[Batch] = []
        for pairs, share in sources:
            drawn = sorted(pairs.draw(round(share * BUCKET * 32)), key=pairs.length)
            made.extend(pairs.batch(group) for group in _groups(drawn, pairs))
        chance.shuffle(made)
        yield from made


def _groups(drawn: Sequence[int], pairs: Pairs) -> Iterator[list[int]]:
    group: list[int] = []
    for number in drawn:
        if group and pairs.length(number) * (len(group) + 1) > BATCH_TOKENS:
            yield group
            group = []
        group.append(number)
    if group:
        yield group


def loss_of(logits: Tensor, labels: Tensor) -> Tensor:
    """Cross-entropy of three classes; of `not_supported`, that of the two classes it may be, together."""
    logs = functional.log_softmax(logits, dim=1)
    either = torch.logsumexp(logs[:, 1:], dim=1, keepdim=True)
    chosen = torch.cat([logs, either], dim=1).gather(1, labels[:, None])[:, 0]
    smooth = 0.5 * (logs[:, 0] + either[:, 0])
    return -((1 - SMOOTHING) * chosen + SMOOTHING * smooth).mean()


def support(logits: Tensor) -> Tensor:
    """The log-odds that the quote supports the claim."""
    return logits[:, 0] - torch.logsumexp(logits[:, 1:], dim=1)


class Training:
    """The weights, their optimizer, and the number of pairs seen.

    Each worker has gradients of its own and shares the weights with the others. None waits for another: on a shared
    processor a worker that waits loses its turn too.
    """

    def __init__(self, network: EntailmentNetwork, run: Path, *, pairs: int, decay: int, rate: float = 1.0) -> None:
        named = [(name, value) for name, value in network.named_parameters() if value.requires_grad]
        body = [value for name, value in named if not name.startswith("classifier")]
        head = [value for name, value in named if name.startswith("classifier")]
        groups = [{"params": body, "lr": RATE, "most": RATE}, {"params": head, "lr": HEAD_RATE, "most": HEAD_RATE}]
        self._optimizer = torch.optim.AdamW(groups, betas=(0.9, 0.98), weight_decay=0.01, fused=True)
        self._network, self._run = network, run
        self._pairs, self._decay, self._rate = pairs, decay, rate
        self._seen, self._losses, self._saved = 0, [], time.monotonic()
        self._logged = (time.monotonic(), 0)
        self._average = {name: value.clone() for name, value in network.state_dict().items()}
        self._turn = threading.Lock()

    def resume(self, state: dict[str, Any]) -> None:
        self._network.load_state_dict(state["network"])
        self._optimizer.load_state_dict(state["optimizer"])
        self._average = state.get("average") or {name: value.clone() for name, value in state["network"].items()}
        self._seen = state["seen"]
        self._logged = (time.monotonic(), self._seen)

    def stop(self) -> None:
        """End after the batches that the workers are at."""
        self._pairs = 0

    def work(self, source: Iterator[Batch]) -> None:
        """Learn from batches until the pairs are used up."""
        own = copy.deepcopy(self._network)
        for parameter, shared in zip(own.parameters(), self._network.parameters(), strict=True):
            parameter.data = shared.data
        while self._seen < self._pairs:
            with self._turn:
                batch = next(source)
            own.zero_grad(set_to_none=True)
            with torch.autocast("cpu", dtype=torch.bfloat16, enabled=HALVES):
                logits = own(batch.ids, batch.kinds, batch.present)
            loss = loss_of(logits.float(), batch.labels)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(own.parameters(), 1.0)
            with self._turn:
                self._step(own, loss.item(), len(batch.labels))

    def _step(self, own: EntailmentNetwork, loss: float, count: int) -> None:
        for parameter, shared in zip(own.parameters(), self._network.parameters(), strict=True):
            shared.grad = parameter.grad
        height = max(min(self._seen / WARM_UP, (self._pairs - self._seen) / max(self._decay, 1), 1.0), 0.01)
        for group in self._optimizer.param_groups:
            group["lr"] = group["most"] * height * self._rate
        self._optimizer.step()
        self._seen += count
        self._losses.append(loss)
        if len(self._losses) % AVERAGE_STEPS == 0:
            for name, value in self._network.state_dict().items():
                self._average[name].lerp_(value, 1 - AVERAGE_KEPT)
        if len(self._losses) % LOG_STEPS == 0:
            self._log(height)
        if time.monotonic() - self._saved > CHECKPOINT_SECONDS:
            self.save()

    def _log(self, height: float) -> None:
        now, (before, seen) = time.monotonic(), self._logged
        speed = (self._seen - seen) / (now - before)
        recent = sum(self._losses[-LOG_STEPS:]) / LOG_STEPS
        print(
            f"{time.strftime('%H:%M:%S')} {self._seen} pairs, loss {recent:.3f}, {speed:.1f}/s, rate {height:.2f}",
            flush=True,
        )
        self._logged = (now, self._seen)

    def save(self) -> None:
        """Write `last.pt`, and `weights.npz` for training/export.py, each whole or not at all."""
        self._saved = time.monotonic()
        state = {
            "network": self._network.state_dict(),
            "average": self._average,
            "optimizer": self._optimizer.state_dict(),
            "seen": self._seen,
        }
        torch.save(state, self._run / "next.pt")
        (self._run / "next.pt").replace(self._run / "last.pt")
        np.savez(self._run / "next.npz", **published({name: value.numpy() for name, value in self._average.items()}))
        (self._run / "next.npz").replace(self._run / "weights.npz")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("run", type=Path)
    parser.add_argument("sources", nargs="+")
    parser.add_argument("--pairs", type=int, default=100_000)
    parser.add_argument("--decay", type=int, default=20_000)
    parser.add_argument("--rate", type=float, default=1.0, help="the part of the usual learning rates that is used")
    parser.add_argument("--frozen", type=int, default=2, help="first layers that are not trained")
    parser.add_argument("--from", type=Path, dest="begin", help="a checkpoint of another run to continue from")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(given.seed)
    given.run.mkdir(parents=True, exist_ok=True)
    (given.run / "pid").write_text(str(os.getpid()))
    read = read_exported if is_exported(given.model) else read_reranker
    training = Training(
        EntailmentNetwork(read(given.model), frozen=given.frozen),
        given.run,
        pairs=given.pairs,
        decay=given.decay,
        rate=given.rate,
    )
    last = given.run / "last.pt"
    begin = last if last.exists() else given.begin
    if begin:
        training.resume(torch.load(begin, weights_only=True))
    signal.signal(signal.SIGTERM, lambda *_: training.stop())
    sources = [source.partition("=") for source in given.sources]
    drawn = [(Pairs(Path(path), seed=given.seed), float(share or 1)) for path, _, share in sources]
    source = batches(drawn, chance=random.Random(given.seed))  # noqa: S311 - the same every time
    with ThreadPoolExecutor(given.workers) as pool:
        for done in [pool.submit(training.work, source) for _ in range(given.workers)]:
            done.result()
    training.save()


if __name__ == "__main__":
    main()

"""Dynamic padding with length-bucketed batches beside padding to the longest pair: real tokens per second.

python scripts/bench/bucketing.py scale=small dataset=stackexchange dataset.path=PATH

LoRA on SmolLM2, forward and backward, on training pairs of ``gcg/sft``: of all of them evenly spaced by length as
many as ``--pairs``. Each way learns from the same pairs; padding is to the longest of all. A token counts once,
padding never. The ways take turns. How much of each way's batches is padding is counted over all pairs.
"""

import argparse
import random
import statistics
import tempfile
import time
from pathlib import Path

import clock
import torch

from graphcontext.component import instantiate
from graphcontext.config import compose
from graphcontext.stage import Stages
from graphcontext.store import Store, Workspace
from graphcontext.train import key as keys
from graphcontext.train.base import Base
from graphcontext.train.batches import Collate, Course, Deal
from graphcontext.train.examples import Example
from graphcontext.train.pairs import read_pairs
from graphcontext.train.tuning import CausalTuning

LONGEST, SHUFFLED, UNSORTED, BUCKETED = (
    "every batch to the longest pair",
    "to the longest of a shuffled batch",
    "ours, bucket=false: sorted within a step",
    "ours, bucket=true",
)


def spread(examples: list[Example], n: int) -> list[Example]:
    """Return ``n`` examples, evenly spaced in the order of their lengths."""
    ordered = sorted(examples, key=lambda e: e.length)
    return [ordered[int((i + 0.5) * len(ordered) / n)] for i in range(n)] if n < len(ordered) else examples


def batches(way: str, examples: list[Example], config: dict) -> list[list[int]]:
    """Return the forward passes of one epoch."""
    trainer, seed = config["trainer"], config["seed"]
    lengths, micro = tuple(e.length for e in examples), trainer["micro_batch_size"]
    if way in (LONGEST, SHUFFLED):
        order = random.Random(seed).sample(range(len(examples)), len(examples))
        return [order[start : start + micro] for start in range(0, len(order), micro)]
    size = min(trainer["batch_size"], len(lengths))
    course = Course(lengths, size, -(-len(lengths) // size), seed, way == BUCKETED)
    deal = Deal(1, micro)
    dealt = [part for batch in course.steps() for part in deal.of(batch, lengths, 0, deal.passes(size))]
    return [part for part in dealt if part[0] >= 0]  # a pass of a rank with nothing left learns nothing


def padding(parts: list[list[int]], examples: list[Example], to: int | None) -> float:
    """Return the part of all positions that is padding."""
    wide = sum(len(part) * (to or max(examples[i].length for i in part)) for part in parts)
    return 1 - sum(examples[i].length for part in parts for i in part) / wide


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=12, help="that are computed")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("overrides", nargs="*", help="of graphcontext train, such as trainer.micro_batch_size=4")
    options = parser.parse_args()
    config = compose(["adapter.dropout=0.0", *options.overrides], primary="train").config
    settings, adapter = instantiate(config["trainer"], "trainer"), instantiate(config["adapter"], "adapter")
    with tempfile.TemporaryDirectory() as folder:
        workspace = Workspace(Store(Path(folder) / "store"), quiet=True)
        pairs = read_pairs(config, "train", workspace, Stages(workspace))
    base = Base(keys.base(config), adapter, settings)
    every = base.encode(pairs, settings).examples
    some, longest = spread(every, options.pairs), max(e.length for e in every)
    module = CausalTuning(base.load, settings, Course((1,), 1, 1, 0, False), [], config["seed"])
    module.configure_model()
    ways = [LONGEST, SHUFFLED, UNSORTED, BUCKETED]
    to = {way: longest if way == LONGEST else None for way in ways}
    real = sum(e.length for e in some)
    times: dict[str, list[tuple[float, float]]] = {way: [] for way in ways}
    losses: dict[str, float] = {}
    for turn in range(options.rounds):
        for way in ways if turn % 2 == 0 else reversed(ways):
            collate = Collate(base.pad, to[way])
            total, start = 0.0, (time.process_time(), time.perf_counter())
            for part in batches(way, some, config):
                loss, _ = module.losses(collate([(some[i], True) for i in part]))
                loss.backward()
                total += loss.item()
                for weight in module.trained():
                    weight.grad = None
            times[way].append((time.process_time() - start[0], time.perf_counter() - start[1]))
            losses[way] = total
    slow = [cpu for cpu, _ in times[LONGEST]]
    rows = []
    for way in ways:
        cpu, wall = (statistics.median(t[of] for t in times[way]) for of in (0, 1))
        ratios = [a / b for a, (b, _) in zip(slow, times[way], strict=True)]
        shown = f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
        padded = [f"{padding(batches(way, found, config), found, to[way]):.0%}" for found in (every, some)]
        apart = abs(losses[way] / losses[LONGEST] - 1)
        rows.append((way, *padded, f"{real / cpu:.0f}", f"{real / wall:.0f}", shown, f"{apart:.0e}"))
    mean = sum(e.length for e in every) / len(every)
    name = config["dataset"].get("path") or config["dataset"].get("name")
    print(f"{len(every)} training pairs of {Path(str(name)).name}: {mean:.0f} tokens, the longest {longest}.")
    print(f"Computed: {len(some)} of them, {real:,} tokens; micro-batches of {settings.micro_batch_size},", end=" ")
    print(f"steps of {settings.batch_size}, {options.rounds} rounds, {torch.get_num_threads()} thread\n")
    columns = "padding | padded, all pairs | padded, computed | tokens a CPU s | tokens a wall s | ratio | losses to"
    clock.table(columns, rows)


if __name__ == "__main__":
    main()

"""Lightning's loop, as ``graphcontext train`` runs it, beside a bare PyTorch loop on the same batches.

python scripts/bench/training_loop.py --models smollm2 tiny

Both train LoRA on the same frozen model from the same weights: forward, backward of the scaled loss, clipping, AdamW,
the schedule. Ours does besides what a user gets: the callback with its checks, the rows of metrics.csv, the bar and
wandb (offline, where it is installed). The loops take turns; of each turn the first step warms up, and the last, which
writes the checkpoint, is timed by itself. ``tiny`` has two layers of 64: what is left there is the loop.
"""

import argparse
import itertools
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import clock
import torch
from torch.utils.data import DataLoader

from graphcontext.component import instantiate
from graphcontext.config import compose
from graphcontext.train import key as keys
from graphcontext.train.base import Base
from graphcontext.train.batches import Collate, Course, Deal, Learnt, RankBatches
from graphcontext.train.checkpoint import Position, trained
from graphcontext.train.data_module import PairsData
from graphcontext.train.examples import IGNORED, Example, Examples
from graphcontext.train.fit import recipe
from graphcontext.train.report import Bar, Wandb
from graphcontext.train.steps import Seats, Steps
from graphcontext.train.strategy import Calm, lightning_trainer
from graphcontext.train.tuning import CausalTuning

PAD = 0
TINY = {"vocab_size": 1000, "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2}
Now = tuple[float, float]  # wall and CPU seconds


def now() -> Now:
    return time.perf_counter(), time.process_time()


class Stamped(Steps):
    """The callback of a training, which also notes when each step ends and how long its checkpoint takes."""

    def on_train_start(self, trainer: Any, module: Any) -> None:
        super().on_train_start(trainer, module)
        self.stamps, self.saving = [now()], 0.0

    def on_train_batch_end(self, trainer: Any, module: Any, *rest: Any) -> None:
        super().on_train_batch_end(trainer, module, *rest)
        if module.passes == 0:
            self.stamps.append(now())

    def save(self, trainer: Any, module: Any) -> None:
        start = time.perf_counter()
        super().save(trainer, module)
        self.saving += time.perf_counter() - start


class Race:
    """One model, its batches, and both loops.

    Args:
        config: resolved, composed with ``primary="train"``.
        load: returns the model with its adapter.
        examples: to train on, in one epoch.
    """

    def __init__(self, config: dict, load: Callable[[], Any], examples: list[Example]) -> None:
        self.config, self.settings = config, instantiate(config["trainer"], "trainer")
        self.examples, self.network = examples, load().train()
        size, lengths = self.settings.batch_size, tuple(e.length for e in examples)
        self.course = Course(lengths, size, len(examples) // size, config["seed"], self.settings.bucket)
        self.deal = Deal(1, self.settings.micro_batch_size)
        self.before = {name: weight.detach().clone() for name, weight in trained(self.network)}

    def _reset(self) -> None:
        with torch.no_grad():
            for name, weight in trained(self.network):
                weight.copy_(self.before[name])
                weight.grad = None

    def bare(self) -> tuple[list[Now], list[float]]:
        """Return the times at which steps end, and their losses."""
        self._reset()
        settings, network, total = self.settings, self.network, self.course.total
        weights = [weight for weight in network.parameters() if weight.requires_grad]
        optimiser = torch.optim.AdamW(weights, lr=settings.learning_rate, weight_decay=settings.weight_decay)
        counts = [sum(CausalTuning.n_targets(self.examples[i]) for i in batch) for batch in self.course.steps()]
        batches = RankBatches(self.course, self.deal, 0)
        loader = DataLoader(Learnt(self.examples), batch_sampler=batches, collate_fn=Collate(PAD))
        losses, step, loss_sum = [], 0, torch.zeros(())
        stamps = [now()]
        for n, batch in enumerate(loader, 1):
            targets = batch["labels"][:, 1:]
            kept = (targets != IGNORED).any(0).nonzero().squeeze(1)
            logits = network(
                input_ids=batch["input_ids"],
                attention_mask=batch["attention_mask"],
                use_cache=False,
                logits_to_keep=kept,
            ).logits
            flat = targets[:, kept].flatten()
            loss = torch.nn.functional.cross_entropy(
                logits.float().flatten(0, 1), flat, ignore_index=IGNORED, reduction="sum"
            )
            (loss / counts[step]).backward()
            loss_sum += loss.detach()
            if n % batches.passes:
                continue
            for group in optimiser.param_groups:
                group["lr"] = settings.rate(step, total)
            torch.nn.utils.clip_grad_norm_(weights, settings.clip)
            optimiser.step()
            optimiser.zero_grad()
            losses.append(loss_sum.item() / counts[step])
            step, loss_sum = step + 1, torch.zeros(())
            stamps.append(now())
        return stamps, losses

    def ours(self) -> tuple[list[Now], list[float], float]:
        """Return the times at which steps end, their losses, and the seconds of the checkpoint."""
        self._reset()
        with tempfile.TemporaryDirectory() as name, Calm():
            folder, position = Path(name), Position()
            module = CausalTuning(
                lambda: self.network, self.settings, self.course, self.examples, self.config["seed"], 0
            )
            data = PairsData(Examples(self.examples), Examples(), self.course, self.settings, Collate(PAD))
            curve = Wandb(self.settings.wandb, "0" * 32, folder / "wandb", "bench", recipe(self.config))
            bar = Bar(self.course.total, 0, False)
            steps = Stamped(Seats(folder), position, data.held_out_loader, bar, curve)
            lightning_trainer(self.settings, self.course, self.deal, steps, folder).fit(module, datamodule=data)
            bar.close()
            curve.close()
        return steps.stamps, [row["loss"] for row in position.rows[1:]], steps.saving


def examples_of(n: int, tokens: int, vocabulary: int) -> list[Example]:
    """Return examples of about ``tokens`` random tokens, the second half of which is learnt."""
    draw = random.Random(0)
    found = []
    for i in range(n):
        ids = tuple(draw.randrange(10, vocabulary) for _ in range(draw.randint(tokens * 7 // 8, tokens)))
        half = len(ids) // 2
        found.append(Example(str(i), ids, (IGNORED,) * half + ids[half:]))
    return found


def tiny(adapter: Any) -> Any:
    """Return a Llama of two small layers with its adapter."""
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    heads = {"num_attention_heads": 4, "num_key_value_heads": 2}
    return adapter.wrap(LlamaForCausalLM(LlamaConfig(**TINY, **heads)).requires_grad_(False))


def race_of(model: str, options: argparse.Namespace) -> Race:
    """Return the loops for ``smollm2`` or ``tiny``."""
    size = options.micro * options.passes
    words = [f"trainer.batch_size={size}", f"trainer.micro_batch_size={options.micro}", "adapter.dropout=0.0"]
    words += [f"trainer.wandb={options.wandb}"] if options.wandb else []
    config = compose(["scale=sample", *words], primary="train").config
    adapter = instantiate(config["adapter"], "adapter")
    vocabulary, load = TINY["vocab_size"], lambda: tiny(adapter)
    if model != "tiny":
        base = Base(keys.base(config), adapter, instantiate(config["trainer"], "trainer"))
        vocabulary, load = len(base.model.tokenizer), base.load
    return Race(config, load, examples_of(size * (options.steps + 2), options.tokens, vocabulary))


def spent(stamps: list[Now], of: int) -> list[float]:
    """Return the wall (0) or CPU (1) seconds of each step but the first and the last."""
    return [b[of] - a[of] for a, b in itertools.pairwise(stamps)][1:-1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="+", default=["smollm2", "tiny"], choices=["smollm2", "tiny"])
    parser.add_argument("--steps", type=int, default=6, help="timed ones of each turn")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--micro", type=int, default=2, help="pairs of a forward pass")
    parser.add_argument("--passes", type=int, default=2, help="forward passes of a step")
    parser.add_argument("--tokens", type=int, default=128, help="of the longest pair")
    parser.add_argument("--wandb", choices=["offline", "disabled"], help="default: as graphcontext train")
    options = parser.parse_args()
    rows = []
    for model in options.models:
        race = race_of(model, options)
        times: dict[str, list[list[list[float]]]] = {"bare": [[], []], "ours": [[], []]}  # loop → clock → turn → steps
        worst, saving = 0.0, []
        for n in range(options.rounds):
            losses = {}
            for name in ("bare", "ours") if n % 2 == 0 else ("ours", "bare"):
                stamps, losses[name], *rest = getattr(race, name)()
                saving += rest
                for of in (0, 1):
                    times[name][of].append(spent(stamps, of))
            worst = max(worst, *(abs(a - b) for a, b in zip(losses["bare"], losses["ours"], strict=True)))
        for of, name in ((1, "CPU"), (0, "wall")):
            ratios = [sum(a) / sum(b) for a, b in zip(times["ours"][of], times["bare"][of], strict=True)]
            a, b = ([s for turn in times[loop][of] for s in turn] for loop in ("ours", "bare"))
            over = statistics.median(x - y for x, y in zip(a, b, strict=True))
            spread = f"{min(ratios):.3f} to {max(ratios):.3f}"
            shown = [f"{1000 * statistics.median(seconds):.1f}" for seconds in (b, a)]
            equal = f"losses to {worst:.0e}" if of else f"checkpoint {1000 * statistics.median(saving):.0f} ms"
            rows.append((model, name, *shown, f"{statistics.median(ratios):.3f}", spread, f"{1000 * over:.1f}", equal))
    shape = f"{options.passes} × {options.micro} pairs of up to {options.tokens} tokens"
    print(f"LoRA, {shape} a step, {options.rounds} rounds of {options.steps} steps\n")
    clock.table("model | clock | bare, ms a step | ours, ms a step | ratio | of rounds | ours − bare, ms | check", rows)


if __name__ == "__main__":
    main()

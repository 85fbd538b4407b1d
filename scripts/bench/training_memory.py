"""Peak memory of training a small model on the CPU: measured in a fresh process each, beside what ``plan`` says.

python scripts/bench/training_memory.py --kinds lora qlora full --shapes 1x128 1x512 2x256 4x128

Each process loads ``smollm2``, puts the adapter of conf/adapter on it and takes a few steps (forward, backward,
AdamW) on random tokens, all of which are learnt; with and without gradient checkpointing. Measured is the peak of
its resident memory (VmHWM): the weights' file counts, since it is mapped.
"""

import argparse
import json
import subprocess
import sys
import time

import clock

STEPS = 4  # the heap has nearly grown to its end by then


def peak_gib() -> float:
    """Return the peak resident memory of this process."""
    with open("/proc/self/status", encoding="ascii") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 2**20


def adapter_node(kind: str) -> dict:
    """Return the config node of an adapter."""
    import yaml

    from graphcontext.conf_tree import conf_dir

    return yaml.safe_load((conf_dir() / "adapter" / f"{kind}.yaml").read_text(encoding="utf-8"))


def measure(kind: str, micro: int, tokens: int, checkpointing: bool) -> dict[str, float]:
    """Load, adapt and train in this process; return its peak memory and its tokens per CPU second."""
    import pytorch_lightning  # noqa: F401  what a training has in memory too
    import torch

    from graphcontext import models
    from graphcontext.component import instantiate
    from graphcontext.generate.causal_model import quantization_config
    from graphcontext.whole import load_weights

    torch.manual_seed(0)
    adapter = instantiate(adapter_node(kind), "adapter")
    more = {"quantization_config": quantization_config("4bit", torch.float32)} if adapter.quantization == "4bit" else {}
    folder = models.resolve("smollm2")
    network = load_weights("AutoModelForCausalLM", folder, dtype=torch.float32, device_map={"": "cpu"}, **more)
    network = adapter.wrap(network)
    if checkpointing:
        network.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
        network.enable_input_require_grads()
    network.train()
    optimiser = torch.optim.AdamW([p for p in network.parameters() if p.requires_grad])
    vocabulary = network.config.vocab_size
    start = time.process_time()
    for _ in range(STEPS):
        ids = torch.randint(0, vocabulary, (micro, tokens))
        logits = network(input_ids=ids, attention_mask=torch.ones_like(ids), use_cache=False).logits
        labels = torch.nn.functional.pad(ids[:, 1:], (0, 1), value=-100)
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="sum")
        del logits
        loss.backward()
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)
    return {"peak": peak_gib(), "speed": STEPS * micro * tokens / (time.process_time() - start)}


def planned(kind: str, micro: int, tokens: int, checkpointing: bool) -> float:
    """Return the GiB that ``plan`` gives."""
    from graphcontext.config import compose
    from graphcontext.train.memory import memory
    from graphcontext.train.shape import Adapter, shape_of

    shape = shape_of(compose(["llm=smollm2"]).config["roles"]["answer"])
    trainer = {"micro_batch_size": micro, "gradient_checkpointing": checkpointing}
    return sum(memory(shape, Adapter.of(adapter_node(kind)), trainer, tokens).values())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kinds", nargs="+", default=["lora", "qlora", "full"])
    shapes = ["1x128", "1x512", "2x256", "4x128"]
    parser.add_argument("--shapes", nargs="+", default=shapes, help="micro-batch x tokens")
    parser.add_argument("--one", nargs=4, help=argparse.SUPPRESS)  # of a process that measures: prints JSON
    options = parser.parse_args()
    if options.one:
        kind, micro, tokens, checkpointing = options.one
        print(json.dumps(measure(kind, int(micro), int(tokens), checkpointing == "True")))
        return
    rows, ratios = [], []
    for shape in options.shapes:
        micro, tokens = map(int, shape.split("x"))
        for checkpointing in (False, True):
            for kind in options.kinds:
                command = [sys.executable, __file__, "--one", kind, str(micro), str(tokens), str(checkpointing)]
                done = subprocess.run(command, capture_output=True, text=True, check=False)
                if done.returncode:
                    raise SystemExit(done.stderr)
                found = json.loads(done.stdout.splitlines()[-1])
                plan = planned(kind, micro, tokens, checkpointing)
                ratios.append(found["peak"] / plan)
                shown = (f"{found['peak']:.2f}", f"{plan:.2f}", f"{ratios[-1]:.2f}", f"{found['speed']:.0f}")
                rows.append((kind, shape, "yes" if checkpointing else "no", *shown))
                print(*rows[-1], file=sys.stderr)
    print(f"SmolLM2-135M in float32, {STEPS} steps, one thread, a process each\n")
    columns = (
        "adapter | micro-batch x tokens | checkpointing | measured GiB | planned GiB | ratio | tokens per CPU second"
    )
    clock.table(columns, rows)
    worst = max(abs(ratio - 1) for ratio in ratios)
    print(f"Furthest from planned: {worst:.0%}\n")


if __name__ == "__main__":
    main()

"""A process that has imported what training needs, and forks itself for each command: one second instead of ten.

It reads one JSON a line: ``{"argv", "cwd", "env", "log", "blow"}`` starts a command in a process group of its own and
answers with its pid; ``{"poll": pid}`` answers with its exit code (negative: the signal that ended it), null while it
runs. ``blow`` is null, or [signal, step, place]: the command gets the signal in the midst of that optimiser step: after
its first forward pass (``step``), in the midst of writing a checkpoint after it (``checkpoint``), or of the result;
or at that batch of held-out pairs, from 0, of the base model (``base``).
It computes nothing itself, so that its children find neither threads nor locks of another's.
"""

from __future__ import annotations

import io
import json
import os
import sys
from typing import Any


def start(argv: list[str], cwd: str, env: dict[str, str], log: str, blow: list[Any] | None = None) -> int:
    """Fork a child that is the command; its output goes to ``log``.out and ``log``.err."""
    pid = os.fork()
    if pid:
        return pid
    os.setsid()
    os.chdir(cwd)
    os.environ.update(env)
    for name, number in (("out", 1), ("err", 2)):
        file = os.open(f"{log}.{name}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(file, number)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    from graphcontext import cli

    sys.argv = ["graphcontext", *argv]
    sys.modules["__main__"].__spec__ = cli.__spec__
    code = 1
    try:
        if blow is not None:
            await_blow(*blow)
        code = cli.main(argv)
    except SystemExit as ended:
        code = int(ended.code or 0)
    except BaseException:  # noqa: BLE001  # a child must never go on as the server
        import traceback

        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def await_blow(number: int, step: int, place: str) -> None:
    """Let this process send itself a signal at a step."""
    from graphcontext.train import checkpoint, result
    from graphcontext.train.tuning import Tuning

    forward, put, measure = Tuning.training_step, checkpoint.write_atomic, Tuning.held_out_loss
    at: list[int] = [-1]

    def training_step(module: Tuning, *given: Any) -> Any:
        loss = forward(module, *given)
        at[0] = module.done
        if place == "step" and module.done == step and module.passes == 1:
            os.kill(os.getpid(), number)
        return loss

    def held_out_loss(module: Tuning, batches: Any, look: Any) -> Any:
        def seen(done: int, of: int) -> None:
            if done == step and at[0] < 0:
                os.kill(os.getpid(), number)
            look(done, of)

        return measure(module, batches, seen)

    def write_atomic(path: Any, content: Any) -> None:
        if place == "result" or at[0] == step:
            whole = io.BytesIO()
            content(whole) if callable(content) else whole.write(content)
            path.with_name(f".{path.name}.half").write_bytes(whole.getvalue()[: whole.tell() // 2])
            os.kill(os.getpid(), number)
        put(path, content)

    Tuning.training_step = training_step
    if place == "base":
        Tuning.held_out_loss = held_out_loss
    if place == "checkpoint":
        checkpoint.write_atomic = write_atomic
    if place == "result":
        result.write_atomic = write_atomic


def poll(pid: int) -> int | None:
    """Return the exit code of a child, None while it runs."""
    ended, status = os.waitpid(pid, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if ended else None


def main() -> None:
    """Import, say so, and follow what stdin says until it ends."""
    import bitsandbytes  # noqa: F401
    import matplotlib.backends.backend_agg  # noqa: F401
    import peft  # noqa: F401
    import torch
    import transformers.models.llama.modeling_llama  # noqa: F401
    from hydra import compose  # noqa: F401

    import graphcontext.commands
    import graphcontext.train.fit
    import graphcontext.train.result  # noqa: F401

    torch.set_num_threads(1)
    print(json.dumps("ready"), flush=True)
    for line in sys.stdin:
        asked: dict[str, Any] = json.loads(line)
        print(json.dumps(poll(asked["poll"]) if "poll" in asked else start(**asked)), flush=True)


if __name__ == "__main__":
    main()

"""How long a finished table takes to be shown again, each time in a fresh process.

python scripts/bench/finished_table.py gcg/t3 scale=sample table.rows=untrained --folder WORK

WORK holds store/, runs/ and results/, as after `graphcontext table` there; what the table lacks is made first. The
papers' code has no such thing: it computes a table anew. The first figure tells how long that took, here.
"""

import argparse
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

import clock


def seconds(command: list[str], folder: Path) -> tuple[float, float]:
    """Wall and CPU seconds of a process."""
    wall, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    wall, after = time.perf_counter() - wall, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        sys.exit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stderr[-2000:]}")
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("table", nargs="?", default="gcg/t3")
    parser.add_argument("overrides", nargs="*", default=["scale=sample", "table.rows=untrained"])
    parser.add_argument("--folder", type=Path, required=True)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "graphcontext.cli", "table", options.table, *options.overrides]
    first = seconds(command, options.folder)
    again = [statistics.median(values) for values in zip(*(seconds(command, options.folder) for _ in range(3)))]
    print(f"graphcontext table {options.table} {' '.join(options.overrides)}\n")
    rows = [(name, f"{wall:.1f}", f"{cpu:.1f}") for name, (wall, cpu) in (("first call", first), ("again", again))]
    clock.table("call | wall seconds | CPU seconds", rows)


if __name__ == "__main__":
    main()

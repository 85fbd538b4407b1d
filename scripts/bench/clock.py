"""CPU seconds on one thread. Import this before numpy: the number of threads is read once."""

import os
import statistics
import time
from collections.abc import Callable
from typing import Any

for _name in ("OMP", "MKL", "OPENBLAS", "NUMBA", "RAYON"):
    os.environ[f"{_name}_NUM_THREADS"] = "1"
os.environ["OMP_WAIT_POLICY"] = "PASSIVE"


def cpu(function: Callable[[], Any], times: int = 3) -> tuple[float, Any]:
    """Return the median CPU seconds of some calls and the last result."""
    seconds = []
    for _ in range(times):
        start = time.process_time()
        result = function()
        seconds.append(time.process_time() - start)
    return statistics.median(seconds), result


def table(header: str, rows: list[tuple[Any, ...]]) -> None:
    """Print a markdown table; ``header`` holds the column names between bars."""
    print(f"| {header} |")
    print("|" + "---|" * (header.count("|") + 1))
    for row in rows:
        print("| " + " | ".join(str(cell) for cell in row) + " |")
    print(flush=True)

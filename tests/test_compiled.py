"""Functions compiled at their first call."""

import subprocess
import sys

import numba

from graphcontext.compiled import compiled


def double_sum(values):
    """Twice the sum."""
    total = 0.0
    for value in values:
        total += 2 * value
    return total


def test_the_machine_code_gives_the_same_result():
    import numpy as np

    assert compiled(double_sum)(np.array([1.0, 2.5])) == 7.0
    assert compiled(double_sum).__doc__ == "Twice the sum."


def test_without_a_folder_to_cache_in_it_compiles_anew(monkeypatch):
    import numpy as np

    plain = numba.njit

    def refuse_cache(cache=False, **options):
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return plain(**options)

    monkeypatch.setattr(numba, "njit", refuse_cache)
    assert compiled(double_sum)(np.array([1.0])) == 2.0


def test_kernels_are_imported_without_numba():
    code = "import sys; import graphcontext.graph.pagerank, graphcontext.graph.cosine; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0

"""Functions that numba compiles at their first call."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``function`` as machine code, made at the first call and kept beside the source for later processes.

    Where neither that folder nor the user's cache can be written, each process compiles anew. numba is imported
    at the first call, so that importing a kernel costs nothing. No fast-math: sums keep the order in which they
    are written.
    """

    @functools.cache
    def machine_code() -> Callable[..., Any]:
        import numba

        try:
            return numba.njit(cache=True, error_model="numpy")(function)
        except RuntimeError:  # numba found no folder to cache in
            return numba.njit(error_model="numpy")(function)

    @functools.wraps(function)
    def call(*arguments: Any) -> Any:
        return machine_code()(*arguments)

    return call

"""Functions that numba compiles at their first call."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any


def compiled(function: Callable[..., Any] | None = None, *, any_order: bool = False) -> Callable[..., Any]:
    """Return ``function`` as machine code, made at the first call and kept beside the source for later processes.

    Where neither that folder nor the user's cache can be written, each process compiles anew. numba is imported
    at the first call, so that importing a kernel costs nothing.

    Args:
        function: what to compile: numbers, arrays and loops.
        any_order: let sums be taken in another order than written, for speed; the result may then differ in its
            last bits from one machine to another. Only for what is checked afterwards.
    """
    if function is None:
        return functools.partial(compiled, any_order=any_order)

    @functools.cache
    def machine_code() -> Callable[..., Any]:
        import numba

        options = {"error_model": "numpy", "fastmath": {"reassoc", "nsz", "contract"} if any_order else False}
        try:
            return numba.njit(cache=True, **options)(function)
        except RuntimeError:  # numba found no folder to cache in
            return numba.njit(**options)(function)

    @functools.wraps(function)
    def call(*arguments: Any) -> Any:
        return machine_code()(*arguments)

    return call

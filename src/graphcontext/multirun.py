"""``run -m``: every combination of comma-separated values, in Hydra's order (the last key runs fastest)."""

from __future__ import annotations


def expand(overrides: list[str]) -> list[list[str]]:
    """Expand sweeps as Hydra's basic sweeper does (``a=1,2``, ``choice(…)``, ``range(…)``, ``glob(…)``).

    Raises:
        InputError: a value that does not parse.
    """
    from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from hydra.errors import HydraException

    from graphcontext.errors import InputError

    try:
        parsed = OverridesParser.create().parse_overrides(overrides)
    except HydraException as error:
        raise InputError(str(error).splitlines()[0]) from error
    return [list(job) for batch in BasicSweeper.split_arguments(parsed, None) for job in batch]

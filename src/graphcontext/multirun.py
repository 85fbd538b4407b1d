"""``run -m``: every combination of comma-separated values, in Hydra's order (the last key runs fastest)."""

from __future__ import annotations


def expand(overrides: list[str]) -> list[list[str]]:
    """Expand sweeps as Hydra's basic sweeper does (``a=1,2``, ``choice(…)``, ``range(…)``, ``glob(…)``).

    A path (a key that ends in ``path``) is one value, whatever signs it holds.

    Raises:
        InputError: a value that does not parse.
    """
    from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from hydra.errors import HydraException

    from graphcontext.errors import InputError
    from graphcontext.overrides import check_secrets

    for key, _, values in (text.partition("=") for text in overrides):
        for value in values.split(","):
            check_secrets({key.strip("+~"): value})
    paths = [text for text in overrides if text.partition("=")[0].endswith("path")]
    try:
        parsed = OverridesParser.create().parse_overrides([text for text in overrides if text not in paths])
    except HydraException as error:
        raise InputError(str(error).splitlines()[0]) from error
    return [[*job, *paths] for batch in BasicSweeper.split_arguments(parsed, None) for job in batch]

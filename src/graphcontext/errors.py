"""The exceptions a user can meet; each message is one line: what was got, where, what is allowed."""

from __future__ import annotations

import difflib
import traceback
from collections.abc import Iterable
from pathlib import Path


class GraphContextError(Exception):
    """Base of the errors that the command line prints as one line.

    Attributes:
        exit_code: the process exit code, 1 when the work failed, 2 when the input is wrong.
    """

    exit_code = 1


class InputError(GraphContextError):
    """The user's input is wrong: a key, value, file, model or data set. Exit code 2."""

    exit_code = 2


class MissingWeightsError(InputError):
    """A model that a run needs is not on this machine; a table cell says ``not run (no weights: …)``."""


class MissingDataError(InputError):
    """A data set that a run needs is not on this machine; a table cell says ``not run (no data: …)``."""


class MissingSourceError(MissingDataError):
    """A source of knowledge that one component needs is not on this machine; the data set itself is not meant."""


class RunError(GraphContextError):
    """The work itself failed (disk full, every item failed, a server refused the key). Exit code 1."""


def fault(error: BaseException) -> str:
    """Return an unforeseen exception in one line, with the file and line it was raised at."""
    frames = traceback.extract_tb(error.__traceback__)
    at = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {error}".splitlines()[0][:300] + at


def did_you_mean(name: object, allowed: Iterable[object], most: int = 12) -> str:
    """Return ``; did you mean X?`` for a near miss, then the allowed names, at most ``most`` of them.

    >>> did_you_mean(4090, ["RTX-4090"])  # what a YAML takes for a number
    '; did you mean RTX-4090? (allowed: RTX-4090)'
    """
    name, names = str(name), sorted(map(str, allowed))
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    if not close:
        close = [n for n in names if n.lower() == name.lower()][:1]
    hint = f"; did you mean {close[0]}?" if close else ""
    listed = ", ".join(names[:most]) + (", …" if len(names) > most else "")
    return f"{hint} (allowed: {listed})" if names else hint

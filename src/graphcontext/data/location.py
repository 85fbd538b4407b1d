"""Where the files of a data set lie: at a typed path, in the package, or below ``GRAPHCONTEXT_DATA``."""

from __future__ import annotations

import difflib
import os
from pathlib import Path

from graphcontext.errors import InputError, MissingDataError

SHIPPED = Path(__file__).parent / "sample"  # data that the project wrote itself


def data_root() -> Path:
    """Return ``GRAPHCONTEXT_DATA`` (default ``./data``), the folder that holds real data sets."""
    return Path(os.path.expanduser(os.environ.get("GRAPHCONTEXT_DATA") or "data"))


def data_path(
    name: str,
    path: str | None = None,
    others: tuple[str, ...] = (),
    url: str | None = None,
    key: str = "dataset.path",
) -> Path:
    """Return the file or folder of the data set ``name``.

    A ``path`` is looked up as it is (``~`` expanded), then below the data root, then below the data set's own
    folder there. Without one it is the folder that the package ships under this name, else the folder of this
    name below the data root, then each of ``others``.

    Args:
        name: the data set's name, which is its folder below the data root.
        path: what the user or the config typed, None for the default place.
        others: further places below the data root, tried in order (an archive, a site's folder).
        url: where the data set can be fetched, named when it is absent.
        key: the config key that ``path`` is, for messages.

    Raises:
        MissingDataError: nothing lies there; the message lists where it looked and how to get it.
        InputError: no file can have this name, or it may not be looked at.
    """
    root = data_root()
    if path is None:
        places = [SHIPPED / name, root / name, *(root / other for other in others)]
    else:
        typed = Path(os.path.expanduser(path))  # an unknown ~user stays as it is
        places = [typed] if typed.is_absolute() else [typed, root / typed, root / name / typed]
    for place in places:
        if _exists(place, name if path is None else path, key):
            return place
    looked = ", ".join(str(place) for place in places if place.parent != SHIPPED)
    if path is not None:
        more = f"; looked at {looked}" if len(places) > 1 else ""
        fetch = f"; fetch {url} and put it there" if url else ""
        raise MissingDataError(f"{key}={path}: no such file or folder{_near(places[0])}{more}{fetch}")
    fetch = f"fetch {url} and put it there, or " if url else ""
    raise MissingDataError(f"no data: {name}; looked at {looked}; {fetch}set GRAPHCONTEXT_DATA (now {root}) or {key}")


def _near(place: Path) -> str:
    """Return ``; did you mean X?`` for what lies beside a path under a similar name."""
    try:
        close = difflib.get_close_matches(place.name, sorted(os.listdir(place.parent)), n=1)
    except OSError:  # nothing lies there either
        return ""
    return f"; did you mean {place.with_name(close[0])}?" if close else ""


def _exists(place: Path, typed: str, key: str) -> bool:
    shown = ascii(typed) if len(typed) <= 80 else f"{typed[:60]!a}… ({len(typed)} characters)"
    try:
        str(place).encode()
        place.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except UnicodeEncodeError as error:
        reason = "the name is no UTF-8 text; rename the file, or give a link to it"
        raise InputError(f"{key}={shown}: {reason}") from error
    except ValueError as error:
        raise InputError(f"{key}={shown}: {error}") from error
    except OSError as error:
        raise InputError(f"{key}={shown}: {error.strerror}") from error
    return True

"""Real English texts that are there wherever the benches run: the docstrings of the installed packages."""

import ast
import sysconfig
import warnings
from pathlib import Path


def docstrings(n: int) -> list[str]:
    """The first n different docstrings of 40 characters or more, in the order of the files."""
    found: dict[str, None] = {}
    warnings.simplefilter("ignore", SyntaxWarning)
    folder = Path(sysconfig.get_paths()["purelib"])
    for path in sorted([*folder.rglob("*.py"), *Path(sysconfig.get_paths()["stdlib"]).rglob("*.py")]):
        try:
            tree = ast.parse(path.read_text(encoding="utf-8"))
        except (SyntaxError, ValueError, OSError, RecursionError):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Module):
                text = ast.get_docstring(node) or ""
                if len(text) >= 40:
                    found[text] = None
        if len(found) >= n:
            break
    return list(found)[:n]

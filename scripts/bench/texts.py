"""Real English texts that are there wherever the benches run: the docstrings of the installed packages."""

import ast
import sysconfig
import warnings
from collections.abc import Iterator
from pathlib import Path


def docstrings() -> Iterator[str]:
    """Different docstrings of 40 characters or more, in the order of the files."""
    seen = set()
    warnings.simplefilter("ignore", SyntaxWarning)
    paths = sysconfig.get_paths()
    for folder in (paths["purelib"], paths["stdlib"]):
        for path in sorted(Path(folder).rglob("*.py")):
            try:
                tree = ast.parse(path.read_text(encoding="utf-8"))
            except (SyntaxError, ValueError, OSError, RecursionError):
                continue
            for node in ast.walk(tree):
                if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Module):
                    text = ast.get_docstring(node) or ""
                    if len(text) >= 40 and text not in seen:
                        seen.add(text)
                        yield text

"""Documents of all formats as titled paragraphs and tables, each read by its extension."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from graphcontext.data.document import Document, UnreadableError
from graphcontext.data.html_document import read_html
from graphcontext.data.pdf import read_pdf
from graphcontext.data.plain_documents import read_markdown, read_text
from graphcontext.data.word_document import read_docx

READERS: dict[str, Callable[[Path], Document]] = {
    ".pdf": read_pdf,
    ".md": read_markdown,
    ".markdown": read_markdown,
    ".html": read_html,
    ".htm": read_html,
    ".xhtml": read_html,
    ".txt": read_text,
    ".text": read_text,
    ".docx": read_docx,
}


def read_document(path: Path) -> Document:
    """Return what a file holds, read by its extension (:data:`READERS`).

    Raises:
        UnreadableError: it is empty, damaged, locked, of another kind than its name says, or without text.
    """
    try:
        size = path.stat().st_size
        if size == 0:
            raise UnreadableError("is empty (0 bytes)")
        document = READERS[path.suffix.lower()](path)
    except OSError as error:
        raise UnreadableError(f"cannot be opened: {error.strerror or error}") from error
    if not document.parts:
        raise UnreadableError("holds no text")
    return document

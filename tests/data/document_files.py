"""Files of all kinds that tests read: made on the fly, some of them broken on purpose."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

GRID = [("GRID", (0, 0), (-1, -1), 0.5, "black")]
LINES = [
    (kind, (0, row), (-1, row), 1, "black") for kind, row in (("LINEABOVE", 0), ("LINEBELOW", 0), ("LINEBELOW", -1))
]
W = (
    'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main" '
    'xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"'
)


def pdf(path: Path, pages: Sequence[Sequence[Any]], title: str = "", password: str | None = None) -> Path:
    """Write a PDF; a page lists paragraphs, "# headings" and tables as (caption, rows, style)."""
    from reportlab.lib.pdfencrypt import StandardEncryption
    from reportlab.lib.styles import getSampleStyleSheet
    from reportlab.platypus import PageBreak, Paragraph, SimpleDocTemplate, Table

    styles = getSampleStyleSheet()
    story: list[Any] = []
    for number, page in enumerate(pages):
        story += [PageBreak()] if number else []
        for part in page:
            if isinstance(part, str):
                is_heading = part.startswith("# ")
                story.append(Paragraph(part.removeprefix("# "), styles["Heading1" if is_heading else "BodyText"]))
            else:
                caption, rows, style = part
                story += [Paragraph(caption, styles["BodyText"])] if caption else []
                story.append(Table(rows, style=style, hAlign="LEFT"))
    encrypt = StandardEncryption(password, canPrint=0) if password else None
    SimpleDocTemplate(str(path), title=title or None, invariant=1, encrypt=encrypt).build(story)
    return path


def scan(path: Path) -> Path:
    """Write a PDF whose one page is an image."""
    from PIL import Image
    from reportlab.lib.utils import ImageReader
    from reportlab.pdfgen.canvas import Canvas

    canvas = Canvas(str(path), invariant=1)
    canvas.drawImage(ImageReader(Image.new("L", (40, 60), 128)), 50, 50, 400, 600)
    canvas.save()
    return path


def docx(path: Path, body: str, prolog: str = "", member: str = "word/document.xml") -> Path:
    """Write a Word document of a body of WordprocessingML."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(member, f"<?xml version='1.0'?>{prolog}<w:document {W}><w:body>{body}</w:body></w:document>")
    return path


def paragraph(text: str, style: str = "") -> str:
    properties = f'<w:pPr><w:pStyle w:val="{style}"/></w:pPr>' if style else ""
    return f"<w:p>{properties}<w:r><w:t>{text}</w:t></w:r></w:p>"


def zip_bomb(path: Path, megabytes: int) -> Path:
    """Write a small .docx that unpacks to so many megabytes of text."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("word/document.xml", "w") as stream:
        for _ in range(megabytes):
            stream.write(b"a" * 2**20)
    return path

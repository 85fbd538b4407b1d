"""Make the PDFs and questions of the data set structural_sample; the same bytes each time.

    python scripts/sample_data/structural.py [FOLDER]      # default: src/graphcontext/data/sample/structural_sample

Texts and questions are those of ``structural/*.yaml`` (CC0 1.0); reportlab sets them, page by page.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import yaml
from reportlab.lib import colors
from reportlab.lib.enums import TA_JUSTIFY
from reportlab.lib.pagesizes import A4
from reportlab.lib.styles import ParagraphStyle
from reportlab.platypus import BaseDocTemplate, Flowable, Frame, PageBreak, PageTemplate, Paragraph, Spacer, Table

HERE = Path(__file__).parent / "structural"
TARGET = Path(__file__).parents[2] / "src" / "graphcontext" / "data" / "sample" / "structural_sample"
TEXT = ParagraphStyle("text", fontName="Times-Roman", fontSize=10.5, leading=13.5, spaceAfter=8, alignment=TA_JUSTIFY)
HEADING = ParagraphStyle("heading", fontName="Helvetica-Bold", fontSize=14, leading=18, spaceAfter=8)
TITLE = ParagraphStyle("title", fontName="Helvetica-Bold", fontSize=20, leading=25, spaceAfter=16)
CAPTION = ParagraphStyle("caption", fontName="Helvetica-Oblique", fontSize=9, leading=12, spaceBefore=6, spaceAfter=4)
RULES = {
    "grid": [("GRID", (0, 0), (-1, -1), 0.6, colors.black), ("BACKGROUND", (0, 0), (-1, 0), colors.lightgrey)],
    "lines": [
        ("LINEABOVE", (0, 0), (-1, 0), 1.0, colors.black),
        ("LINEBELOW", (0, 0), (-1, 0), 0.5, colors.black),
        ("LINEBELOW", (0, -1), (-1, -1), 1.0, colors.black),
    ],
    "none": [],
}


def main(target: Path) -> None:
    target.mkdir(parents=True, exist_ok=True)
    for document in yaml.safe_load((HERE / "documents.yaml").read_text(encoding="utf-8")):
        write_pdf(document, target / document["file"])
    rows = list(questions(yaml.safe_load((HERE / "questions.yaml").read_text(encoding="utf-8"))))
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    (target / "questions.jsonl").write_text(text, encoding="utf-8")


def questions(groups: dict[str, list[str]]) -> Any:
    for kind, lines in groups.items():
        for n, line in enumerate(lines, 1):
            question, answer, nodes = (part.strip() for part in line.split(" | "))
            supports = [node.strip().replace("#", ".pdf#", 1) for node in nodes.split(";")]
            yield {
                "id": f"{kind}-{n:02d}",
                "question": question,
                "answers": [answer],
                "supports": supports,
                "split": "test",
            }


def write_pdf(document: dict[str, Any], path: Path) -> None:
    width, height = A4
    margin, gap = 62, 20
    inner = width - 2 * margin
    top, bottom = height - 70, 60
    template = BaseDocTemplate(
        str(path), pagesize=A4, title=document["title"], author="graphcontext", invariant=1, pageCompression=1
    )
    n, first = document["columns"], 48
    column = (inner - (n - 1) * gap) / n
    frames = [
        Frame(margin + i * (column + gap), bottom, column, top - bottom - first, 0, 0, 0, 0, id=f"c{i}")
        for i in range(n)
    ]

    def furniture(canvas: Any, _: Any) -> None:
        page = canvas.getPageNumber()
        if page == 1:
            title = Paragraph(document["title"], TITLE)
            title.wrapOn(canvas, inner, 60)
            title.drawOn(canvas, margin, top - 30)
        else:
            canvas.setFont("Helvetica", 8)
            canvas.drawString(margin, height - 40, document["title"])
        canvas.setFont("Helvetica", 9)
        canvas.drawCentredString(width / 2, 32, str(page))

    template.addPageTemplates(PageTemplate(id="page", frames=frames, onPage=furniture))
    story: list[Flowable] = []
    for number, page in enumerate(document["pages"]):
        story += [PageBreak()] if number else []
        for part in page:
            story += flowables(part)
    template.build(story)


def flowables(part: Any) -> list[Flowable]:
    if isinstance(part, dict):
        rows = [[cell.strip() for cell in row.split("|")] for row in part["rows"]]
        style = [
            ("FONT", (0, 0), (-1, -1), "Helvetica", 8.5),
            ("FONT", (0, 0), (-1, 0), "Helvetica-Bold", 8.5),
            ("ALIGN", (1, 1), (-1, -1), "RIGHT" if rows[1][1].replace(",", "").isdigit() else "LEFT"),
            ("TOPPADDING", (0, 0), (-1, -1), 2),
            ("BOTTOMPADDING", (0, 0), (-1, -1), 3),
        ]
        table = Table(rows, style=style + RULES[part["rules"]], hAlign="LEFT")
        return [Paragraph(part["table"], CAPTION), table, Spacer(1, 12)]
    if part.startswith("# "):
        return [Paragraph(part[2:], HEADING)]
    return [Paragraph(part, TEXT)]


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else TARGET)

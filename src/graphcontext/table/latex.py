"""A finished table as LaTeX for booktabs: one tabular per data set, the paper's numbers in brackets."""

from __future__ import annotations

from graphcontext.table import format as text
from graphcontext.table.cells import Cell, Column, TableResult, best_rows

ESCAPES = {
    "\\": "\\textbackslash{}",
    "{": "\\{",
    "}": "\\}",
    **{character: f"\\{character}" for character in "&%$#_"},
    "~": "\\textasciitilde{}",
    "^": "\\textasciicircum{}",
    "<": "\\textless{}",
    ">": "\\textgreater{}",
    "|": "\\textbar{}",
    "–": "--",
    "—": "---",
    "…": "\\dots{}",
    "×": "$\\times$",
    "→": "$\\rightarrow$",
    "Δ": "$\\Delta$",
}
MARKS = {"fallback": "f", "stand-in": "s", "close": "c", "underpowered": "u", "off": "o", "not reported": "n"}


def to_tex(result: TableResult) -> str:
    r"""Return a ``table*`` with one booktabs tabular per data set; needs the packages booktabs and graphicx.

    Under each metric stand ours with its interval and, in brackets, the paper's. Raised letters give the
    status (``ok`` has none), numbers point to the notes below.
    """
    notes = text.Notes(result)
    tabulars = [_tabular(result, column, notes) for column in result.columns]
    ranks = ["\\medskip\n" + _ranks(result)] if result.ranks else []
    used = {cell.status for cell in result.cells}
    marks = [f"{mark}: {status}" for status, mark in MARKS.items() if status in used]
    below = [*text.legend(result), *([f"Status, {'; '.join(marks)}."] if marks else [])]
    numbered = [f"$^{{{i}}}$ {escape_tex(note)}" for i, note in enumerate(notes.lines, 1)]
    lines = [
        f"% {text.generated_by(result)}",
        "\\begin{table*}",
        "\\centering\\small\\setlength{\\tabcolsep}{3pt}",
        f"\\caption{{{escape_tex(result.title)} (scale: {escape_tex(result.scale)})}}",
        f"\\label{{tab:{result.table.replace('/', '-').replace('_', '-')}}}",
        "\n\\medskip\n".join(f"\\resizebox{{\\textwidth}}{{!}}{{%\n{tabular}}}" for tabular in tabulars),
        *ranks,
        "\\par\\smallskip\\footnotesize\\raggedright",
        "\\\\\n".join([*map(escape_tex, below), *numbered]),
        "\\end{table*}",
    ]
    return "\n".join(lines) + "\n"


def escape_tex(words: str) -> str:
    """Return ``words`` with every character that LaTeX would read as a command escaped, on one line."""
    return "".join(ESCAPES.get(character, character) for character in " ".join(words.split()))


def _ranks(result: TableResult) -> str:
    """Return the mean ranks as a tabular of their own, the paper's in brackets."""
    labels = {row.id: escape_tex(row.label) for row in result.rows}
    lines = ["\\begin{tabular}{lrr}", "\\toprule", "Mean rank & ours & paper \\\\", "\\midrule"]
    for rank in result.ranks:
        paper = "" if rank.reported is None else f"({text.number(rank.reported, 2)})"
        guard = "{}" if labels[rank.row].startswith("[") else ""
        lines.append(f"{guard}{labels[rank.row]} & {escape_tex(text.number(rank.rank, 2))} & {paper} \\\\")
    return "\n".join([*lines, "\\bottomrule", "\\end{tabular}"])


def _tabular(result: TableResult, column: Column, notes: text.Notes) -> str:
    metrics = [metric for metric in result.metrics if result.block(column, metric)]
    paper = text.paper_names(column)
    heading = escape_tex(column.label) + (f" (paper: {escape_tex(paper)})" if paper else "")
    spans = " & ".join(f"\\multicolumn{{2}}{{c}}{{{escape_tex(metric.label)}}}" for metric in metrics)
    rules = " ".join(f"\\cmidrule(lr){{{2 * i + 2}-{2 * i + 3}}}" for i in range(len(metrics)))
    width = 2 * len(metrics) + 1
    lines = [
        f"\\begin{{tabular}}{{l{'lr' * len(metrics)}}}",
        "\\toprule",
        f"\\multicolumn{{{width}}}{{l}}{{{heading}}} \\\\",
        f" & {spans} \\\\",
        rules,
        f" & {' & '.join(['ours & paper'] * len(metrics))} \\\\",
    ]
    bold = {m.id: best_rows((cell for _, cell in result.block(column, m)), m.higher_is_better) for m in metrics}
    group = None
    for row in result.rows:
        cells = [result.cell(row, column, metric) for metric in metrics]
        if not any(cells):
            continue
        if row.group != group:
            group = row.group
            lines.append("\\midrule")
            if group:
                lines.append(f"\\multicolumn{{{width}}}{{l}}{{\\textit{{{escape_tex(group)}}}}} \\\\")
        values = [
            " & " if cell is None else _cell(result, column, cell, row.id in bold[cell.metric], notes) for cell in cells
        ]
        label = escape_tex(row.label)
        lines.append(f"{'{}' if label.startswith('[') else ''}{label} & {' & '.join(values)} \\\\")
    return "\n".join([*lines, "\\bottomrule", "\\end{tabular}"])


def _cell(result: TableResult, column: Column, cell: Cell, bold: bool, notes: text.Notes) -> str:
    paper = escape_tex(text.reported(cell.reported, column, result.digits))
    paper = f"({paper})" if paper else ""
    if cell.value is None:
        return f"\\textit{{not run}}$^{{{notes.number(cell.status)}}}$ & {paper}"
    value = text.number(cell.value, result.digits)
    value = f"\\textbf{{{value}}}" if bold else value
    raised = ("*" if text.is_significant(cell) else "") + MARKS.get(cell.status, "")
    raised = f"$^{{{raised}}}$" if raised else ""
    spread = f" {{\\scriptsize {text.interval(cell.ci95, result.digits)}}}" if cell.ci95 else ""
    return f"{value}{raised}{spread} & {paper}"

"""What stands under a table whose rows have other questions or one value."""

from graphcontext.table.cautions import cautions
from graphcontext.table.cells import Cell, Column, Measure, Row, TableResult


def table(*cells: Cell) -> TableResult:
    return TableResult(
        table="kgp/t1",
        title="",
        scale="small",
        command="",
        rows=tuple(Row(name, name.upper(), "") for name in ("base", "asks", "also", "none")),
        columns=(Column("d", "Data", ()),),
        metrics=(Measure("sf_em", "SF-EM"), Measure("em", "EM")),
        cells=cells,
        unit="percent",
        digits=1,
        baseline="base",
    )


def cell(row: str, metric: str, value: float, n: int, diff: float | None = None) -> Cell:
    return Cell(row, "d", metric, value, n=n, diff=diff)


def test_a_mean_over_fewer_questions_is_named_beside_the_baselines():
    found = cautions(
        table(
            cell("base", "sf_em", 83.5, 200),
            cell("asks", "sf_em", 87.5, 24, -4.17),
            cell("also", "sf_em", 95.8, 24, 4.13),
            cell("none", "sf_em", 0.0, 200, -83.5),
        )
    )
    assert found == ["asks, also on Data: 24 questions, not all; BASE on these: SF-EM 91.7"]


def test_a_metric_of_one_value_compares_nothing():
    rows = ("base", "asks", "also")
    same = [cell(row, "em", 0.0, 24) for row in rows]
    other = [cell(row, "sf_em", float(n), 24) for n, row in enumerate(rows)]
    assert cautions(table(*same, *other)) == ["Data: all rows have EM 0.0, which compares nothing"]
    assert cautions(table(*other)) == cautions(table(*same[:2])) == []

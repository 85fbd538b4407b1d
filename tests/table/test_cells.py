"""Cells hold what the contract names; bold is for a best value that is no chance."""

import dataclasses

import pytest

from graphcontext.errors import InputError
from graphcontext.table.cells import Cell, best_rows, unit_factor


def test_a_cell_has_the_fields_of_the_contract_in_order():
    names = "row column metric value ci95 n seeds sd reported status run baseline diff diff_ci95 p p_holm family"
    assert [field.name for field in dataclasses.fields(Cell)] == names.split()


def cell(row: str, value: float | None, p_holm: float | None = None, diff: float | None = 0.1) -> Cell:
    return Cell(row, "data", "rouge1", value=value, p_holm=p_holm, diff=diff)


@pytest.mark.parametrize(
    ("cells", "bold"),
    [
        ([cell("base", 0.2), cell("a", 0.3, 0.04), cell("b", 0.25, 0.001)], {"a"}),
        ([cell("base", 0.2), cell("a", 0.3, 0.05)], set()),  # .05 is not below .05
        ([cell("base", 0.4), cell("a", 0.3, 0.01)], set()),  # the best is the baseline: no p of its own
        ([cell("a", 0.3, 0.01), cell("b", 0.3, 0.02)], {"a", "b"}),
        ([cell("a", None)], set()),
        ([cell("a", 0.0, 0.031, -50.0)], set()),  # the only row, and worse than what it is tested against
        ([cell("a", 0.0, 0.031, 0.0)], set()),
    ],
)
def test_bold_marks_the_best_only_where_it_is_significant(cells, bold):
    assert best_rows(cells) == bold


def test_the_lowest_is_best_where_lower_is_better():
    rows = [cell("a", 0.3, 0.01, 0.1), cell("b", 0.1, 0.01, -0.1)]
    assert best_rows(rows, higher_is_better=False) == {"b"}
    assert best_rows(rows[:1], higher_is_better=False) == set()


def test_an_unknown_unit_is_named():
    assert unit_factor("percent") == 100
    with pytest.raises(InputError, match=r"unit 'percents' is unknown; did you mean percent\?"):
        unit_factor("percents")

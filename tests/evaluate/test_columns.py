"""Which metric gives a further column."""

import pytest

from graphcontext.conf_tree import options
from graphcontext.evaluate.columns import option_of


@pytest.mark.parametrize(
    ("column", "metric"),
    [
        ("f1", "f1"),
        ("acc_answered", "acc"),
        ("struct_em_asked", "struct_em"),
        ("ndcg@20", "ndcg@k"),
        ("sf_em@5", "sf_em"),
        ("recall@k", "recall@k"),
        ("em_answred", None),
        ("em@", None),
        ("_answered", None),
        ("nothing@5", None),
    ],
)
def test_a_column_names_its_metric(column, metric):
    assert option_of(column, options("metric")) == metric

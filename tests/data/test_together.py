"""Several data sets read as one."""

import pytest
from multihop_files import hotpotqa, write_hotpot

from graphcontext.data.together import Together
from graphcontext.errors import InputError


def together(limit=None, seed=0, **parts):
    return Together("both", parts, limit, seed, "test", None)


def test_questions_keep_their_ids_and_corpora(tmp_path):
    folders = [tmp_path / name for name in "ab"]
    one, two = (hotpotqa(write_hotpot(folder, test=3, start=10 * n)) for n, folder in enumerate(folders))
    both = together(a=one, b=two).load()
    alone = [one.load(), two.load()]
    assert {q.id for q in both.questions} == {q.id for part in alone for q in part.questions}
    assert both.corpora == alone[0].corpora | alone[1].corpora
    assert both.card["kept"] == 6 and set(both.card["parts"]) == {"a", "b"}


def test_a_limit_draws_from_all_parts_as_if_they_were_one(tmp_path):
    """Each part builds the corpora of no more than the limit; what is drawn of them is drawn of all."""
    folders = [tmp_path / name for name in "ab"]
    one, two = (hotpotqa(write_hotpot(folder, test=6, start=10 * n)) for n, folder in enumerate(folders))
    everything = together(a=one, b=two).load().questions
    cut = together(limit=4, seed=3, a=one, b=two)
    assert cut.select(cut.load().questions) == cut.select(everything)
    assert len(cut.select(everything)) == 4


def test_an_id_in_two_parts_is_refused(tmp_path):
    one = hotpotqa(write_hotpot(tmp_path, test=3))
    with pytest.raises(InputError, match="3 ids stand in several parts"):
        together(a=one, b=hotpotqa(tmp_path)).load()


def test_no_part_is_refused():
    with pytest.raises(InputError, match="names no data set"):
        together()

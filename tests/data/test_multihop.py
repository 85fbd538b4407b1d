"""What multi-hop data sets share: padding, one corpus for all, official sides, the card."""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from multihop_files import hotpot_item, hotpotqa, musique, write_hotpot, write_json, write_musique

from graphcontext.data.padding import Document, Documents, Wanted, cut, plain_title, shuffled
from graphcontext.data.records import Corpus
from graphcontext.errors import InputError

# -- passages ------------------------------------------------------------------------------------

SENTENCES = st.lists(st.sampled_from(("One.", " Two words.", "", "Three longer words.", " ")), max_size=6)


@given(st.lists(SENTENCES, max_size=3), st.one_of(st.none(), st.integers(0, 40)))
def test_a_document_is_cut_without_loss_in_order_and_within_paragraphs(paragraphs, most):
    document = Document("T", tuple(map(tuple, paragraphs)))
    made = cut(document, most)
    plain = [sentence.strip() for paragraph in paragraphs for sentence in paragraph]
    assert " ".join(made.texts) == " ".join(sentence for sentence in plain if sentence)
    assert len(made.of_sentence) == len(plain)
    for sentence, n in zip(plain, made.of_sentence, strict=True):
        assert (n == -1) if not sentence else sentence in made.texts[n]
    if most is not None:
        assert all(len(text) <= most or text in plain for text in made.texts)
    else:
        assert len(made.texts) == sum(any(s.strip() for s in paragraph) for paragraph in paragraphs)


@pytest.mark.parametrize("unit", ["merged", "merged:0", "merged:x", "sentences", "merged:²", 250])
def test_another_passage_unit_is_refused(tmp_path, unit):
    with pytest.raises(InputError, match="allowed: sentence, paragraph, merged:N"):
        hotpotqa(tmp_path, passage_unit=unit)


# -- padding -------------------------------------------------------------------------------------


def documents(rng: random.Random, n: int) -> list[Document]:
    """Documents of few titles and sentences, so that many are equal."""
    words = ("Red.", "Blue.", "Green.", "A colour.")
    return [
        Document(rng.choice("ABCDEFab!?"), (tuple(rng.choice(words) for _ in range(rng.randrange(1, 4))),))
        for _ in range(n)
    ]


def wanted(n_passages=None, n_documents=None, seed=0):
    return Wanted(0, "CC0", n_passages, n_documents, seed)


@given(st.randoms(use_true_random=False), st.integers(1, 25), st.integers(0, 3))
def test_padding_is_exact_without_own_titles_and_gold_texts_and_nested(rng, n, seed):
    pool = documents(rng, 14)
    own, gold = pool[:2], [(0, 0)]
    made = Documents(pool, wanted(n, seed=seed)).of_question("q", own, gold)
    n_own = sum(len(d.paragraphs[0]) for d in own)
    padded = made.passages[n_own:]
    titles = {plain_title(d.title) for d in own}
    assert all(plain_title(p.title) not in titles and p.match_text != own[0].paragraphs[0][0] for p in padded)
    left = [s for d in set(pool) if plain_title(d.title) not in titles for s in d.paragraphs[0]]
    left = [s for s in left if s != own[0].paragraphs[0][0]]
    assert len(made.passages) == max(n_own, min(n, n_own + len(left)))  # exact, or own alone, or all there is
    assert len({p.id for p in made.passages}) == len(made.passages)
    assert made.corpus() == Corpus.of(made.passages)  # the id of a corpus made fast is the id of any other
    longer = Documents(pool, wanted(n + 5, seed=seed)).of_question("q", own, gold)
    assert longer.passages[: len(made.passages)] == made.passages  # a longer padding begins as a shorter one
    rng.shuffle(pool)
    again = Documents(pool, wanted(n, seed=seed)).of_question("q", own, gold)
    assert again.corpus() == made.corpus()  # whatever the order of the file


@given(st.randoms(use_true_random=False), st.integers(1, 12))
def test_n_documents_counts_own_ones_and_never_drops_gold(rng, n):
    pool = documents(rng, 14)
    own = pool[:4]
    made = Documents(pool, wanted(n_documents=n)).of_question("q", own, [(3, 0), (1, 0)])
    titles = {plain_title(d.title) for d in own}
    others = {d for d in pool if plain_title(d.title) not in titles}
    gold = {own[1].paragraphs[0][0], own[3].paragraphs[0][0]}
    usable = sum(any(s not in gold for s in d.paragraphs[0]) for d in others)
    assert made.n_documents == max(2, min(n, 4 + usable))
    texts = {p.id: p.match_text for p in made.passages}
    assert [texts[i] for i in dict.fromkeys(made.gold)] == [own[3].paragraphs[0][0], own[1].paragraphs[0][0]]


@given(st.integers(0, 40), st.text(max_size=5))
def test_a_shuffle_is_a_permutation_and_the_same_for_one_seed(n, seed):
    assert sorted(shuffled(n, seed)) == list(range(n))
    assert list(shuffled(n, seed)) == list(shuffled(n, seed))


def test_another_seed_or_question_draws_another_padding(tmp_path):
    folder = write_hotpot(tmp_path, test=12)

    def padded(seed):
        loaded = hotpotqa(folder, n_passages=15, pad_seed=seed).load()
        return [[p.title for p in loaded.corpora[q.corpus_id].passages[5:]] for q in loaded.questions]

    first, again, other = padded(0), padded(0), padded(1)
    assert first == again != other
    assert all({len(titles) for titles in found} == {10} for found in (first, other))
    assert len({tuple(titles) for titles in first}) == 12


def test_where_the_pool_is_too_small_all_is_taken_and_counted(tmp_path):
    loaded = hotpotqa(write_hotpot(tmp_path, test=3), n_passages=16).load()
    assert {len(corpus.passages) for corpus in loaded.corpora.values()} == {15}  # 3 questions with 5 passages each
    assert loaded.card["counts"]["questions short of n_passages, as the file holds no more"] == 3
    assert loaded.card["corpora"]["padded to"] == "16 passages, pad_seed 0"


def test_limit_leaves_the_padding_as_it_is(tmp_path):
    folder = write_hotpot(tmp_path, test=6)
    whole, few = hotpotqa(folder, n_passages=20), hotpotqa(folder, n_passages=20, limit=2)
    loaded, all_of_it = few.load(), whole.load()
    assert len(loaded.corpora) == len(loaded.questions) == 2  # corpora of scored questions alone
    assert loaded.questions == few.select(all_of_it.questions) == few.select(loaded.questions)
    assert all(corpus == all_of_it.corpora[name] for name, corpus in loaded.corpora.items())


@pytest.mark.parametrize("n", [{"n_passages": 0}, {"n_documents": -1}, {"n_passages": 5, "n_documents": 5}])
def test_a_number_that_nothing_can_be_padded_to_is_refused(tmp_path, n):
    with pytest.raises(InputError, match=r"dataset\.n_"):
        hotpotqa(tmp_path, **n)


# -- one corpus for all --------------------------------------------------------------------------


def test_the_global_corpus_holds_each_passage_once(tmp_path):
    shared = [["Sea", ["The sea is deep.", "The sea is deep."]], ["Town 1", ["Town 1 lies on River 1."]]]
    items = [hotpot_item(1), hotpot_item(2, context=shared, supporting_facts=[["Town 1", 0], ["Sea", 1]])]
    path = write_json(tmp_path / "dev.json", items)
    loaded = hotpotqa(path, corpus="global", n_passages=900).load()
    (corpus,) = loaded.corpora.values()
    assert [p.match_text for p in corpus.passages] == [
        *("Town 1 lies on River 1.", "It has 1000 people.", "River 1 is long.", "It flows into Sea 1."),
        *("Ships use it.", "The sea is deep."),
    ]
    assert corpus == Corpus.of(corpus.passages)
    first, last = corpus.passages[0].id, corpus.passages[5].id
    assert loaded.questions[1].supports == (first, last)
    assert {question.corpus_id for question in loaded.questions} == {corpus.id}
    assert loaded.card["corpora"]["padded to"] == "not padded"
    alone = hotpotqa(path).load()  # a passage has one id in every corpus
    assert alone.questions[0].supports == loaded.questions[0].supports


# -- sides ---------------------------------------------------------------------------------------


def test_dev_is_test_and_a_tenth_of_train_is_validation(tmp_path):
    folder = write_hotpot(tmp_path, test=3, train=20)
    by_side = {side: {q.id for q in hotpotqa(folder, side=side).load().questions} for side in ("train", "validation")}
    assert {side: len(ids) for side, ids in by_side.items()} == {"train": 18, "validation": 2}
    assert by_side["train"] | by_side["validation"] == {f"q{100 + n}" for n in range(1, 21)}
    assert [q.id for q in hotpotqa(folder).load().questions] == ["q1", "q2", "q3"]


def test_t42_a_training_question_equal_to_a_test_question_is_left_out_and_counted(tmp_path):
    write_json(tmp_path / "dev.json", [hotpot_item(1)])
    copy = hotpot_item(9, question="INTO what sea does the river of Town 1 flow")
    write_json(tmp_path / "train.json", [copy, *(hotpot_item(n) for n in range(10, 20))])
    for exclude, done in ((True, "excluded"), (False, "kept")):
        reader = hotpotqa(tmp_path, exclude_duplicates=exclude)
        sides = [reader.load(side) for side in ("train", "validation")]
        assert ("q9" in {q.id for side in sides for q in side.questions}) is not exclude
        assert sides[0].card["copies"][f"questions equal to a test question, {done}"] == 1


def test_padding_of_a_side_comes_from_its_own_file_alone(tmp_path):
    folder = write_hotpot(tmp_path, test=5, train=20)
    for side, own in (("test", range(1, 6)), ("train", range(101, 121))):
        loaded = hotpotqa(folder, side=side, n_passages=24).load()
        titles = {p.title for corpus in loaded.corpora.values() for p in corpus.passages}
        assert titles <= {f"{kind} {n}" for n in own for kind in ("Town", "River")}


@pytest.mark.parametrize("side", ["train", "validation"])
def test_a_side_without_a_file_is_one_line(tmp_path, side):
    folder = write_hotpot(tmp_path)
    for path in (folder, folder / "hotpot_dev_distractor_v1.json"):
        with pytest.raises(InputError, match=f"split={side} has no file, found hotpot_dev_distractor_v1.json alone"):
            hotpotqa(path, side=side).load()
    train = write_json(tmp_path / "t" / "train.json", [hotpot_item(1)])
    with pytest.raises(InputError, match=r"split=test has no file, found train\.json alone"):
        hotpotqa(train).load()


def test_a_single_file_can_be_cut_by_hashed_id(tmp_path):
    folder = write_musique(tmp_path, n=16)
    reader = musique(folder, split="last_quarter", n_passages=20)
    sides = {side: {q.id for q in reader.load(side).questions} for side in ("train", "validation", "test")}
    assert {side: len(ids) for side, ids in sides.items()} == {"train": 11, "validation": 1, "test": 4}
    assert len(set().union(*sides.values())) == 16


def test_two_files_of_a_side_are_listed(tmp_path):
    for name in ("my_dev.json", "other_dev.json"):
        write_json(tmp_path / name, [hotpot_item(1)])
    with pytest.raises(InputError, match=r"several files of the test side: my_dev\.json, other_dev\.json"):
        hotpotqa(tmp_path).load()
    assert len(hotpotqa(tmp_path / "my_dev.json").load().questions) == 1


def test_a_folder_without_the_data_set_says_what_it_holds(tmp_path):
    (tmp_path / "notes.txt").touch()
    with pytest.raises(InputError, match=r"found notes\.txt; expected hotpot_dev_distractor\*\.json, hotpot_train\*"):
        hotpotqa(tmp_path).load()
    with pytest.raises(InputError, match=r"notes\.txt is no \.json file"):
        hotpotqa(tmp_path / "notes.txt").load()


# -- key and card --------------------------------------------------------------------------------


def test_the_key_follows_the_content_of_the_files_that_are_read(tmp_path):
    a, b = write_hotpot(tmp_path / "a", train=9), write_hotpot(tmp_path / "b", train=9)

    def key(folder, side):
        return type(hotpotqa(None)).identity({"name": "hotpotqa", "path": str(folder), "side": side})

    assert key(a, "test") == key(b, "test") == key(b / "hotpot_dev_distractor_v1.json", "test")
    write_json(b / "hotpot_train_v1.1.json", [hotpot_item(7)])
    assert key(a, "test") == key(b, "test")  # test is read from its own file alone
    assert key(a, "train") != key(b, "train")
    assert key(a, "train")["apart_from"] == "validation and test"


def test_the_card_has_the_statistics_of_table_3_by_type(tmp_path):
    items = [hotpot_item(1), hotpot_item(2, type="comparison", supporting_facts=[["Town 2", 0]])]
    card = hotpotqa(write_json(tmp_path / "dev.json", items)).load().card
    # 2 documents of 2 and 3 sentences of 6, 4, 4, 5 and 3 words
    whole = {"questions": 2, "documents": 2, "passages": 5, "words per passage": 4.4, "supports": 1.5}
    assert card["per_question"] == whole
    assert card["types"] == {
        "bridge": whole | {"questions": 1, "supports": 2},
        "comparison": whole | {"questions": 1, "supports": 1},
    }
    assert card["read"] == {"questions": 2, "documents": 4}
    assert (card["pool"], card["scored_candidates"]) == (10, 2)
    json.dumps(card, allow_nan=False)

"""The data set: filters with counts, the split, the pool, the card, the key."""

from __future__ import annotations

import json

import pytest
import yaml
from dumps import CONF, answer, config, dataset, link, question, thread, write

from graphcontext.data.card import card_markdown
from graphcontext.data.leaks import LAYERS
from graphcontext.data.splits import SIDES
from graphcontext.data.stackexchange import StackExchange, site_of
from graphcontext.errors import InputError, MissingDataError

FILTERS = (
    "no accepted answer",
    "dangling accepted answer",
    "duplicate by link",
    "duplicate by text",
    "non-specific answer",
    "question length",
    "answer length",
)


def threads(n: int, first: int = 1, year: int = 2019) -> str:
    """``n`` threads on different topics, one a day."""
    return "".join(
        thread(first + 2 * k, f"topic {first + 2 * k}", f"{year}-{1 + k // 28:02d}-{1 + k % 28:02d}") for k in range(n)
    )


def two_sides(n: int = 20) -> str:
    """``n`` threads of 2019 with ids from 1, ``n`` of 2021 with ids from 1001."""
    return threads(n) + threads(n, 1001, 2021)


def loaded(folder, side=None, **overrides):
    return dataset(folder, **{"site": "linux.example.org"} | overrides).load(side)


def pool_ids(result):
    (corpus,) = result.corpora.values()
    return [int(p.source.link.rsplit("/", 1)[1]) for p in corpus.passages]


def test_a_passage_is_matched_on_the_question_and_shown_with_its_accepted_answer(tmp_path):
    extra = answer(3000, 1, "<p>Another way: run <code>x</code>.</p>", Score=-2, OwnerDisplayName="eve")
    result = loaded(write(tmp_path / "linux.example.org", two_sides() + extra))
    (corpus,) = result.corpora.values()
    passage = corpus.passages[0]
    assert passage.match_text == "topic 1\nHow is it done on a server? I tried all I know about topic 1."
    assert passage.context_text.startswith("Question: topic 1\nHow is it done")
    assert passage.context_text.endswith(
        "\n\nAnswer: Answer 2: edit the file, then reload the service and look at its log."
    )
    assert [(a.votes, a.accepted, a.author) for a in passage.answers] == [(2, True, "user8"), (-2, False, "eve")]
    assert passage.source.link == "https://linux.example.org/questions/1"
    assert (passage.source.author, passage.source.license) == ("user7", "CC BY-SA 4.0")
    asked = result.questions[0]
    assert (asked.id, asked.title, asked.corpus_id) == ("1001", "topic 1001", corpus.id)
    assert asked.references == ("Answer 1002: edit the file, then reload the service and look at its log.",)


def test_each_filter_takes_and_counts(tmp_path):
    day = "2019-06-01"
    posts = two_sides()
    posts += question(3001, "nobody answered")
    posts += question(3003, "deleted answer", accepted=9999) + answer(3004, 3003)
    posts += thread(3005, "marked as duplicate", day)
    posts += thread(
        3007, "Topic 1 !", "2019-12-01", Body="<p>how is it done on a server? I tried all I know about topic 1</p>"
    )
    posts += question(3009, "thanks", 3010) + answer(3010, 3009, "<p>Thanks, it works now.</p>")
    posts += question(3011, "link only", 3012) + answer(3012, 3011, '<p>See <a href="x">the long page on this</a></p>')
    posts += thread(3013, "short", day, Body="<p>Help!</p>")
    posts += question(3015, "terse", 3016) + answer(3016, 3015, "<p>Reboot the machine.</p>")
    posts += thread(3017, "long", day, Body=f"<p>{'word ' * 700}</p>")
    posts += thread(3019, "elsewhen", "2017-01-01")
    result = loaded(write(tmp_path, posts, links=link(3005, 1) + link(3, 1, kind=1)))
    assert {k: n for k, n in result.card["filters"].items() if n} == {
        "no accepted answer": 1,
        "outside years": 1,
        "dangling accepted answer": 1,
        "duplicate by link": 1,
        "non-specific answer": 2,
        "question length": 2,
        "answer length": 1,
        "duplicate by text": 1,
    }
    assert result.card["read"]["questions"] == 50
    assert result.card["kept"] == 40
    assert result.card["pool"] == 20
    assert 1 in pool_ids(result)  # the original and the earliest stay
    assert not {3005, 3007} & set(pool_ids(result))


def test_an_answer_that_begins_with_thanks_but_says_how_is_specific(tmp_path):
    body = "<p>Thanks to all. What helped was to edit /etc/fstab, add nofail to the entry and mount it again.</p>"
    posts = two_sides() + question(3001, "thanks and more", 3002) + answer(3002, 3001, body)
    assert 3001 in pool_ids(loaded(write(tmp_path, posts)))


def test_filters_can_be_put_off(tmp_path):
    posts = two_sides() + thread(3005, "marked", "2019-06-01")
    folder = write(tmp_path, posts, links=link(3005, 1))
    assert 3005 in pool_ids(loaded(folder, exclude_duplicates=False))


def test_t42_copies_of_scored_questions_leave_the_pool_and_are_counted(tmp_path):
    posts = two_sides()
    # 4001 (filtered) has two originals, 1 in the pool and 1001 scored: 1 is a copy of 1001
    posts += thread(4001, "marked", "2022-01-01")
    # 4003 has the words of 3 in another order
    posts += thread(
        4003, "topic 3", "2022-01-02", Body="<p>I tried all I know about topic 3. How is it done on a server?</p>"
    )
    result = loaded(write(tmp_path, posts, links=link(4001, 1) + link(4001, 1001)))
    assert not {1, 3} & set(pool_ids(result))
    guard = {"own thread": 0, "duplicate by link": 1, "duplicate by text": 0, "equal token set": 1}
    assert result.card["leak_guard"] == guard
    assert result.card["pool"] == 18
    # the limit cuts scored questions only: the guard looks at all candidates
    cut = loaded(write(tmp_path, posts, links=link(4001, 1) + link(4001, 1001)), limit=1)
    assert list(cut.corpora) == list(result.corpora)


def test_t42_without_the_duplicate_filters_the_guard_still_holds(tmp_path):
    body = "<p>How is it done on a server? I tried all I know about topic 5.</p>"
    posts = two_sides() + thread(4001, "TOPIC 5", "2022-01-01", Body=body)
    result = loaded(write(tmp_path, posts, links=link(1003, 7)), exclude_duplicates=False)
    assert not {5, 7} & set(pool_ids(result))
    assert result.card["leak_guard"]["duplicate by text"] == 1
    assert result.card["leak_guard"]["duplicate by link"] == 1


def test_limit_and_seed_select_nested_subsets(tmp_path):
    folder = write(tmp_path, two_sides(30))
    all_questions = loaded(folder).questions
    few = dataset(folder, limit=10, seed=5).select(all_questions)
    many = dataset(folder, limit=20, seed=5).select(all_questions)
    assert len(few) == 10
    assert set(few) < set(many)
    assert dataset(folder).select(all_questions) == all_questions


def test_the_papers_years_are_used_where_both_sides_hold_twenty(tmp_path):
    result = loaded(write(tmp_path, two_sides()))
    assert result.card["split"]["rule"] == "years 2019–2020 / 2021–2023"
    assert "at least 20 kept questions (20 and 20)" in result.card["split"]["why"]
    assert len(result.questions) == 20


def test_else_the_last_quarter_in_time_order_of_all_years(tmp_path):
    result = loaded(write(tmp_path, threads(12, year=2016) + threads(20, 1001) + threads(8, 2001, 2021)))
    assert result.card["split"]["rule"] == "last quarter in time order"
    assert "keep 20 and 8 questions, 20 are needed" in result.card["split"]["why"]
    assert len(result.questions) == 10
    assert result.card["filters"]["outside years"] == 0


def test_the_rule_of_the_cut_can_be_chosen(tmp_path):
    folder = write(tmp_path, threads(3) + threads(2, 1001, 2021) + threads(3, 2001, 2016))
    years = loaded(folder, split="years")
    assert years.card["split"] == {
        **{"side": "test", "rule": "years 2019–2020 / 2021–2023", "why": "dataset.split=years (3 and 2)"},
        **{"train": 3, "test": 2},
    }
    assert years.card["filters"]["outside years"] == 3
    quarter = loaded(folder, split="last_quarter")
    assert quarter.card["split"]["why"] == "dataset.split=last_quarter"
    assert [q.id for q in quarter.questions] == ["1001", "1003"]
    assert len(pool_ids(quarter)) == 6


def test_without_dates_the_last_quarter_goes_by_id(tmp_path):
    posts = threads(8).replace("CreationDate", "Unknown")
    result = loaded(write(tmp_path, posts))
    assert result.card["split"]["rule"] == "last quarter in id order"
    assert [q.id for q in result.questions] == ["13", "15"]
    assert result.card["dates"] == {"pool": [], "scored": []}


def test_validation_scores_the_last_tenth_of_training_and_keeps_it_out_of_the_pool(tmp_path):
    folder = write(tmp_path, two_sides())
    result = loaded(folder, "validation")
    assert [q.id for q in result.questions] == ["37", "39"]
    assert pool_ids(result) == list(range(1, 36, 2))
    by_argument = dataset(folder, site="linux.example.org", side="validation").load()
    assert by_argument == result
    assert 39 in pool_ids(loaded(folder, "test"))


def test_train_asks_each_fold_from_the_other_folds_pool(tmp_path):
    result = loaded(write(tmp_path, two_sides()), "train")
    assert len(result.corpora) == 2
    assert len(result.questions) == 18  # 20 without validation
    pools = {i: {p.source.link for p in corpus.passages} for i, corpus in result.corpora.items()}
    for asked in result.questions:
        assert asked.source.link not in pools[asked.corpus_id]
    assert len(set.union(*pools.values())) == 18


def test_t42_copies_of_test_questions_leave_validation_and_train_and_change_their_keys_alone(tmp_path):
    posts, day = two_sides(), "2022-01-02"  # 4003 and 4039 have the words of 3 and of 39, the last, in another order
    for n in (3, 39):
        body = f"<p>I tried all I know about topic {n}. How is it done on a server?</p>"
        posts += thread(4000 + n, f"topic {n}", day, Body=body)
    folder = write(tmp_path, posts)
    train, validation = loaded(folder, "train"), loaded(folder, "validation")
    assert [q.id for q in validation.questions] == ["37"]  # the last tenth of 18
    assert {q.id for q in train.questions} == {str(n) for n in range(1, 36, 2) if n != 3}
    for result in (train, validation):
        assert result.card["leak_guard"]["training questions that copy a test question"] == 2
        assert all(p.title not in ("topic 3", "topic 39") for c in result.corpora.values() for p in c.passages)
    assert list(loaded(folder).card["leak_guard"]) == [*LAYERS]
    keys = {side: StackExchange.identity({"name": "x", "path": str(folder), "side": side}) for side in SIDES}
    assert keys["validation"] == keys["test"] | {"apart_from": "test"} and "apart_from" not in keys["test"]
    assert keys["train"] == keys["test"] | {"apart_from": "validation and test"}


def test_t42_copies_of_validation_questions_leave_train(tmp_path):
    body = "<p>I tried all I know about topic 39. How is it done on a server?</p>"  # the words of 39, of validation
    folder = write(tmp_path, two_sides() + thread(4039, "topic 39", "2019-01-01", Body=body))
    result = loaded(folder, "train")
    assert {int(q.id) for q in result.questions} == set(range(1, 36, 2))
    assert all(p.title != "topic 39" for corpus in result.corpora.values() for p in corpus.passages)
    copies = "training questions that copy a validation question"
    assert result.card["leak_guard"][copies] == 1
    validation = loaded(folder, "validation")
    assert [q.id for q in validation.questions] == ["37", "39"] and pool_ids(validation) == list(range(1, 36, 2))
    assert copies not in validation.card["leak_guard"]


def test_the_same_dump_gives_the_same_bytes(tmp_path):
    folder = write(tmp_path, two_sides())
    assert loaded(folder) == loaded(folder)
    json.dumps(loaded(folder).card)


# -- bad input -----------------------------------------------------------------------------------


def test_an_empty_pool_says_what_the_filters_took(tmp_path):
    posts = question(1, "nobody answered") + thread(3, "the only one", "2019-01-01")
    with pytest.raises(InputError) as caught:
        loaded(write(tmp_path, posts))
    message = str(caught.value)
    assert "no question to score, as 1 question was kept and the split test needs at least 2: some are" in message
    assert "; read 2 questions and 1 answers, kept 1" in message
    assert "left out: no accepted answer 1" in message
    assert "\n" not in message


@pytest.mark.parametrize(("side", "least"), [("test", 2), ("validation", 3), ("train", 4)])
def test_each_side_says_how_many_questions_it_needs(tmp_path, side, least):
    with pytest.raises(InputError, match=f"{least - 1} questions? w.*the split {side} needs at least {least}"):
        loaded(write(tmp_path / "few", threads(least - 1)), side)
    assert loaded(write(tmp_path / "enough", threads(least)), side).questions


def test_what_was_extracted_from_an_archive_that_cannot_be_read_is_removed(tmp_path, monkeypatch):
    import py7zr

    monkeypatch.setenv("GRAPHCONTEXT_HOME", str(tmp_path / "home"))
    with py7zr.SevenZipFile(tmp_path / "a.7z", "w") as opened:
        opened.writestr(b"<posts><row", "Posts.xml")
    with pytest.raises(InputError, match="is cut or malformed"):
        loaded(tmp_path / "a.7z")
    assert not list((tmp_path / "home" / "downloads").iterdir())


def test_a_pool_that_the_leak_guard_empties_says_so(tmp_path):
    posts = thread(1, "a b", "2019-01-01") + thread(3, "b a", "2019-01-02", Body="<p>" + "a b " * 9 + "</p>")
    posts = posts.replace("How is it done on a server? I tried all I know about a b.", "a b " * 9)
    with pytest.raises(InputError, match=r"the pool is empty.*leak guard, equal token set 1"):
        loaded(write(tmp_path, posts))


def test_a_dump_without_rows(tmp_path):
    with pytest.raises(InputError, match="read 0 questions and 0 answers, kept 0; left out: nothing"):
        loaded(write(tmp_path, ""))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"split": "yeras"}, r"dataset.split=yeras; did you mean years\? \(allowed: auto, last_quarter, years\)"),
        ({"split": "validation"}, r"dataset.split=validation: .*; the scored side is split=validation$"),
        ({"side": "tset"}, r"^split=tset: no such side; did you mean test\? \(allowed: test, train, validation\)"),
        ({"side": "auto"}, r"^split=auto: no such side; the rule of the cut is dataset.split=auto"),
        ({"limit": 0}, "dataset.limit=0; allowed: null"),
        ({"train_years": [2020, 2019]}, r"dataset.train_years=\[2020, 2019\]; allowed"),
        ({"train_years": [2019, 2021]}, "must end before"),
        ({"non_specific": ["("]}, "dataset.non_specific: '\\(' is no pattern"),
        ({"min_answer_words": 9, "max_answer_words": 8}, "dataset.min_answer_words=9, dataset.max_answer_words=8"),
    ],
)
def test_a_wrong_value_is_refused_at_once(wrong, message):
    with pytest.raises(InputError, match=message):
        dataset("nowhere", **wrong)


def test_an_unknown_tag_is_refused_with_the_nearest(tmp_path):
    folder = write(tmp_path, two_sides(), tags='  <row Id="1" TagName="linux" Count="4" />\n')
    with pytest.raises(InputError, match=r"dataset.tags names linx; did you mean linux\?"):
        loaded(folder, tags=["linx"])
    assert loaded(folder, tags=["linux"]).card["kept"] == 40


def test_absent_data_names_the_archive_to_fetch(tmp_path, monkeypatch):
    monkeypatch.setenv("GRAPHCONTEXT_DATA", str(tmp_path))
    with pytest.raises(MissingDataError, match=r"https://archive.org/download/stackexchange/askubuntu.com.7z"):
        dataset(name="askubuntu").load()
    with pytest.raises(MissingDataError):
        StackExchange.identity(config("askubuntu"))


def test_the_archive_or_its_folder_below_the_data_root_is_found(tmp_path, monkeypatch):
    monkeypatch.setenv("GRAPHCONTEXT_DATA", str(tmp_path))
    write(tmp_path / "stackexchange" / "unix.stackexchange.com", two_sides())
    assert dataset(name="unix").load().card["site"] == "unix.stackexchange.com"


@pytest.mark.parametrize("typed", ["ai.stackexchange.com", "ai.stackexchange.com.7z", "AI.StackExchange.com.7Z"])
def test_a_dump_of_another_site_is_not_the_papers_data_set(typed):
    message = r"ai\.stackexchange\.com, but dataset=askubuntu is of askubuntu\.com; .*dataset=stackexchange"
    with pytest.raises(InputError, match=rf"(?i){message}"):
        dataset(typed, "askubuntu")
    with pytest.raises(InputError, match=rf"(?i){message}"):
        dataset(f"{typed}/Posts.xml", "askubuntu")
    for own in ("/x/askubuntu.com", "/x/AskUbuntu.com.7z", "/x/dump.2023", "/x/june"):  # no other site's name
        dataset(own, "askubuntu")
    dataset(typed)  # dataset=stackexchange takes the site from there


def test_an_archive_of_another_site_in_the_data_sets_own_folder_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("GRAPHCONTEXT_DATA", str(tmp_path))
    (tmp_path / "askubuntu").mkdir()
    (tmp_path / "askubuntu" / "unix.stackexchange.com.7z").write_bytes(b"7z")
    for read in (dataset(name="askubuntu").load, lambda: StackExchange.identity(config("askubuntu"))):
        with pytest.raises(InputError, match=r"unix\.stackexchange\.com, but dataset=askubuntu"):
            read()


@pytest.mark.parametrize("typed", ["site", "site/askubuntu.com.7z"])
def test_the_archives_sha1_is_checked_in_its_folder_too(tmp_path, typed):
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "askubuntu.com.7z").write_bytes(b"abc")
    with pytest.raises(InputError, match=r"askubuntu\.com\.7z is another file: SHA-1 a9993e36.*, expected 00"):
        dataset(tmp_path / typed, "askubuntu", archive_sha1="00").load()


# -- the key -------------------------------------------------------------------------------------


def test_the_key_follows_content_not_path(tmp_path):
    one = write(tmp_path / "x" / "a.example.org", two_sides())
    two = write(tmp_path / "y" / "a.example.org", two_sides())
    key = StackExchange.identity(config(path=str(one)))
    assert StackExchange.identity(config(path=str(two))) == key
    assert StackExchange.identity(config(path=str(two / "Posts.xml"))) == key
    write(two, two_sides(), links=link(3, 1))
    assert StackExchange.identity(config(path=str(two))) != key
    other_site = write(tmp_path / "b.example.org", two_sides())
    assert StackExchange.identity(config(path=str(other_site))) != key  # links name the site


def test_site_of_a_path(tmp_path):
    assert site_of(tmp_path / "askubuntu.com.7z") == "askubuntu.com"
    assert site_of(tmp_path / "ai.stackexchange.com" / "Posts.xml.gz") == "ai.stackexchange.com"
    assert site_of(tmp_path / "my_dump") == ""


def test_without_a_site_there_is_no_link(tmp_path):
    (corpus,) = loaded(write(tmp_path / "dump", two_sides()), site=None).corpora.values()
    assert corpus.passages[0].source.link == ""


# -- the shipped sample and real dumps -----------------------------------------------------------


def test_the_shipped_sample_gives_every_filter_something_to_do():
    result = dataset(name="cqa_sample").load()
    card = result.card
    assert card["read"]["questions"] >= 160
    assert all(card["filters"][name] > 0 for name in FILTERS)
    assert card["leak_guard"]["duplicate by link"] > 0
    assert card["leak_guard"]["equal token set"] > 0
    assert card["split"]["rule"].startswith("years")
    assert len(result.questions) >= 26
    (corpus,) = result.corpora.values()
    assert len(corpus.passages) > 110
    assert {1, 2, 3} <= {len(p.answers) for p in corpus.passages} <= {1, 2, 3, 4}
    assert any("\n$ " in p.context_text or "\nsudo " in p.context_text for p in corpus.passages)
    assert all(p.source.license == "CC0 1.0" and p.source.author.startswith("user") for p in corpus.passages)
    assert all(p.source.link.startswith("https://cqa.example.org/questions/") for p in corpus.passages)


def test_the_card_is_markdown():
    text = card_markdown(dataset(name="cqa_sample").load().card)
    assert text.startswith("## cqa_sample\n\n| | |\n|---|---|\n")
    assert "| split: rule | years 2019–2020 / 2021–2023 |" in text
    assert "| filters: duplicate by link | 9 |" in text


@pytest.mark.needs_data
@pytest.mark.parametrize(
    ("folder", "read", "without_accepted", "kept"),
    [
        ("ai.stackexchange.com", (421, 749), 209, 207),
        ("genai.stackexchange.com", (181, 243), 134, 44),
        ("datascience.meta.stackexchange.com", (257, 341), 174, 80),
    ],
)
def test_real_dumps(data_root, folder, read, without_accepted, kept):
    result = loaded(data_root / "stackexchange" / folder, site=None)
    card = result.card
    assert (card["read"]["questions"], card["read"]["answers"]) == read
    assert card["filters"]["no accepted answer"] == without_accepted
    assert card["kept"] == kept
    assert card["site"] == folder
    assert card["pool"] + card["scored_candidates"] + sum(card["leak_guard"].values()) == kept
    for corpus in result.corpora.values():
        assert not any("</" in p.match_text and "<p>" in p.match_text for p in corpus.passages)


@pytest.mark.needs_data
def test_the_default_dump_lies_below_the_data_root(data_root, monkeypatch):
    monkeypatch.setenv("GRAPHCONTEXT_DATA", str(data_root))
    assert dataset().load().card["path"] == "ai.stackexchange.com"


@pytest.mark.parametrize("name", ["stackexchange", "askubuntu", "unix", "serverfault", "cqa_sample"])
def test_each_yaml_names_all_arguments_and_opens_with_its_command(name):
    text = (CONF / f"{name}.yaml").read_text(encoding="utf-8")
    assert text.startswith("# graphcontext ")
    assert yaml.safe_load(text)["name"] == name
    values = config(name)  # as composed: the base's keys and its own
    assert yaml.safe_load((CONF / "stackexchange.yaml").read_text())["limit"] == "${limits.questions}"
    assert StackExchange(**config(name)).select is not None
    assert StackExchange.execution | StackExchange.selection <= set(values)

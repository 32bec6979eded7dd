import csv
import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from listenwell.corpora.epitome import split_of
from listenwell.dialogue import Dialogue, Factors, Turn
from listenwell.errors import CorpusError

from .helpers import quick, read, reader, replies, report, through_jsonl

FILES = ("emotional-reactions-reddit.csv", "interpretations-reddit.csv", "explorations-reddit.csv")
COLUMNS = ("sp_id", "rp_id", "seeker_post", "response_post", "level", "rationales")
ER, IP, EX = (
    "rationale.emotional_reaction",
    "rationale.interpretation",
    "rationale.exploration",
)
SORRY = "That must sting, I am sorry. What was the test about?"


def pair(identity, post, reply, levels, **notes):
    turns = (Turn("speaker", post), Turn("listener", reply, Factors(levels=levels), tuple(notes.items())))
    return Dialogue(turns, identity)


def write(folder, rows):
    for name, level in zip(FILES, "012", strict=True):
        with (folder / name).open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(COLUMNS)
            writer.writerows((*row, level, "") for row in rows)
    return folder


def test_train_comes_out_as_written():
    post = "I failed, again. Nobody saw it."
    assert read("epitome", "train") == [
        pair("post1_r1", post, SORRY, (2, 0, 2), **{ER: SORRY[:28], EX: SORRY[29:]}),
        pair("post1_r1_1", post, SORRY, (1, 0, 2), **{ER: "I am sorry.", EX: SORRY[29:]}),
        pair(
            "post2_r2",
            "I cannot sleep.",
            'Same here.\n\nThe nights are "long".',
            (0, 2, 0),
            **{IP: 'The nights are "long".'},
        ),
    ]


def test_valid_and_test_hold_the_other_posts():
    asked = "Have you told them?"
    assert read("epitome", "valid") == [pair("p15_r6", "Work is too loud.", asked, (0, 0, 1), **{EX: asked})]
    assert read("epitome", "test") == [
        pair(
            "post7_r9",
            "I miss the sea.",
            "The sea misses you, too.",
            (1, 1, 0),
            **{ER: "misses you, too", IP: "The sea misses you"},
        )
    ]


def test_levels_fix_the_mechanisms():
    assert [dialogue.turns[1].factors.mechanisms for dialogue in read("epitome", "train")] == [
        ("emotional_reaction", "exploration"),
        ("emotional_reaction", "exploration"),
        ("interpretation",),
    ]


def test_every_fault_is_counted_in_the_split_it_belongs_to():
    assert report("epitome", "train") == (
        {"no level of each mechanism": 1, "empty post or reply": 1, "wrong number of columns": 1},
        {"pairs that stand in the files before": 1},
    )
    assert report("epitome", "valid") == ({"wrong number of columns": 1}, {})
    assert report("epitome", "test") == (
        {"no level of each mechanism": 1, "wrong number of columns": 1},
        {},
    )


def test_each_reply_is_one_example():
    assert replies("epitome", "test") == [(1, "listener", "The sea misses you, too.")]
    assert len(replies("epitome", "train")) == 3


@pytest.mark.parametrize("post", ["post1", "p15", "post7", "", "ü"])
def test_the_split_is_the_named_hash_of_the_post(post):
    place = int(hashlib.sha256(post.encode()).hexdigest()[:8], 16) % 100
    expected = next(name for name, end in (("train", 75), ("valid", 80), ("test", 100)) if place < end)
    assert split_of(post) == expected


def test_the_shares_of_the_splits_are_75_5_20():
    found = [split_of(str(number)) for number in range(10_000)]
    assert [round(found.count(name) / 100) for name in ("train", "valid", "test")] == [75, 5, 20]


def test_every_pair_is_in_exactly_one_split(tmp_path):
    write(tmp_path, [(f"post{n}", f"r{n}", "Post.", "Reply.") for n in range(50)])
    ids = [
        dialogue.id for split in ("train", "valid", "test") for dialogue in read("epitome", split, tmp_path)
    ]
    assert sorted(ids) == sorted(f"post{n}_r{n}" for n in range(50))


@quick
@given(
    texts=st.tuples(*[st.text(st.characters(exclude_categories=["Cs"])).filter(str.strip)] * 2),
)
def test_any_text_comes_back_unchanged(scratch, texts):
    write(scratch, [("post1", "r", *texts)])
    assert read("epitome", "train", scratch) == [pair("post1_r", *texts, (0, 1, 2))]


def test_bytes_that_are_not_utf8_cost_one_row(tmp_path):
    write(tmp_path, [("post1", "r1", "PLACE", "Reply."), ("post2", "r2", "Post.", "Reply.")])
    first = tmp_path / FILES[0]
    first.write_bytes(first.read_bytes().replace(b"PLACE", b"Caf\xe9"))
    assert read("epitome", "train", tmp_path) == [pair("post2_r2", "Post.", "Reply.", (0, 1, 2))]
    assert report("epitome", "train", tmp_path) == ({"not UTF-8": 1}, {})


def test_all_three_files_are_needed(tmp_path):
    write(tmp_path, [])
    assert reader("epitome", tmp_path).available() == ("train", "valid", "test")
    (tmp_path / FILES[2]).unlink()
    assert reader("epitome", tmp_path).available() == ()
    with pytest.raises(CorpusError, match=r"explorations-reddit\.csv.*`listenwell corpus download epitome`"):
        read("epitome", "train", tmp_path)


def test_dialogues_go_through_our_jsonl(tmp_path):
    items = read("epitome", "train") + read("epitome", "test")
    assert through_jsonl(items, tmp_path) == items

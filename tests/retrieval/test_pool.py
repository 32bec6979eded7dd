import json
import os

import pytest

from listenwell.dialogue import Dialogue, Turn
from listenwell.errors import CorpusError, InputError, UnknownNameError
from listenwell.retrieval.pool import find_pool


def pool_of(tmp_path, content, name="pool.txt", **options):
    file = tmp_path / name
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return find_pool(str(file), **options)


def test_a_text_file_holds_a_reply_a_line_and_all_that_is_left_out_is_counted(tmp_path):
    pool = pool_of(
        tmp_path, "Hi  there.\n\n\tHi there. \n   \n" + "x" * 1001 + "\n" + "y" * 1000 + "\nHi there!"
    )
    assert list(pool) == ["Hi there.", "y" * 1000, "Hi there!"]
    assert pool.report.skipped == {
        "empty": 2,
        "said before in the pool": 1,
        "longer than 1,000 characters": 1,
    }
    assert "skipped 2: empty (lines 2, 4)" in pool.report.lines()


def test_reading_again_counts_from_the_beginning(tmp_path):
    pool = pool_of(tmp_path, "a\na\n")
    assert list(pool) == list(pool) == ["a"]
    assert pool.report.skipped == {"said before in the pool": 1}


def test_jsonl_holds_dialogues_texts_and_strings(tmp_path):
    talk = Dialogue((Turn("speaker", "I won!"), Turn("listener", "Great!"), Turn("speaker", "Yes")))
    alone = Dialogue((Turn("listener", "Anyone?"), Turn("speaker", "No.")))
    lines = [
        talk.to_json(),
        alone.to_json(),  # its listener opens the talk: no reply
        '{"text": "I see.", "labels": ["neutral"]}',
        '{"text": "Tell me more."}',
        '{"text": " "}',
        '"As it is."',
        "",
        '{"text": 3}',
        "{broken",
    ]
    pool = pool_of(tmp_path, "\n".join(lines), "pool.jsonl")
    assert list(pool) == ["Great!", "I see.", "Tell me more.", "As it is."]
    counted = pool.report.skipped
    assert (counted["empty"], counted["no reply of a listener in it"], counted["not JSON"]) == (2, 1, 1)
    assert counted.total() == 5


def test_json_is_told_by_its_first_character_where_the_name_says_nothing(tmp_path):
    assert list(pool_of(tmp_path, '\n{"text": "Hi"}\n', "pool")) == ["Hi"]
    assert list(pool_of(tmp_path, "Hi\n{laughs}\n", "other")) == ["Hi", "{laughs}"]


@pytest.mark.parametrize("bad", [b"\xff\xfe", b"a\xc3"])
def test_lines_that_are_not_utf8_are_counted(tmp_path, bad):
    pool = pool_of(tmp_path, b"Good.\n" + bad + b"\nBetter.")
    assert list(pool) == ["Good.", "Better."]
    assert pool.report.skipped == {"not UTF-8": 1}


def test_half_a_surrogate_pair_becomes_text_that_can_be_kept(tmp_path):
    (reply,) = pool_of(tmp_path, json.dumps({"text": "oh \ud800 no"}), "pool.jsonl")
    assert reply == "oh ? no"


def test_the_hash_follows_the_contents_and_the_settings_but_not_the_name(tmp_path):
    first = pool_of(tmp_path, "a\nb\n")
    assert first.hash == pool_of(tmp_path, "a\nb\n", "other.txt").hash
    assert first.hash != pool_of(tmp_path, "a\nb\n", "other.jsonl").hash
    assert first.hash != pool_of(tmp_path, "a\nb\n", longest=999).hash
    assert first.hash == find_pool(str(tmp_path / "pool.txt")).hash
    assert first.name == "pool.txt"  # not where it lies: names stand in results
    before = first.hash
    first.file.write_text("a\nc\n")
    assert first.hash != before


def test_a_corpus_gives_its_listeners_replies(samples):
    pool = find_pool("empathetic_dialogues")
    expected = list(
        dict.fromkeys(" ".join(example.reply.text.split()) for example in pool.reader.examples("train"))
    )
    assert pool.name == "empathetic_dialogues:train"
    assert expected and list(pool) == expected
    assert pool.hash != find_pool("empathetic_dialogues:valid").hash
    assert list(find_pool("empathetic_dialogues:valid")) != expected


def test_a_corpus_without_dialogues_gives_its_texts(samples):
    pool = find_pool("goemotions:train")
    texts = [" ".join(item.text.split()) for item in pool.reader.read("train")]
    assert list(pool) == list(dict.fromkeys(texts))


def test_what_is_no_pool_is_named(tmp_path, samples):
    with pytest.raises(InputError, match="'empathetic_dialogues'"):
        find_pool("empathetic_dialog")
    with pytest.raises(InputError, match="is a folder"):
        find_pool(str(tmp_path))
    with pytest.raises(InputError, match="no file and no corpus"):
        find_pool("a\0b")
    with pytest.raises(UnknownNameError, match="tarin"):
        find_pool("empathetic_dialogues:tarin")
    with pytest.raises(InputError, match="Give 1 or more"):
        pool_of(tmp_path, "a", longest=0)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="no ordinary file"):
        find_pool(str(tmp_path / "pipe"))


def test_a_corpus_that_is_not_here_says_how_to_get_it():
    with pytest.raises(CorpusError, match=r"not here.*corpus download"):
        find_pool("empathetic_dialogues")


def test_without_a_train_split_the_first_that_is_here_is_taken(tmp_path, monkeypatch):
    monkeypatch.setenv("LISTENWELL_DATA", str(tmp_path))
    (tmp_path / "jsonl").mkdir()
    (tmp_path / "jsonl" / "valid.jsonl").write_text('{"text": "Hi", "labels": ["a"]}')
    assert (find_pool("jsonl").name, list(find_pool("jsonl"))) == ("jsonl:valid", ["Hi"])

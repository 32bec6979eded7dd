import pytest
from hypothesis import given
from hypothesis import strategies as st

from listenwell.dialogue import LabelledText
from listenwell.errors import CorpusError
from listenwell.labels import GOEMOTIONS

from .helpers import lines_of_text, quick, read, reader, replies, report, through_jsonl


def written(text):
    """A text as the publisher writes it: quoted as in CSV where it holds quotation marks."""
    return '"' + text.replace('"', '""') + '"' if '"' in text else text


def test_train_comes_out_as_written():
    assert read("goemotions", "train") == [
        LabelledText("The kettle sings, so it is tea time.", ("joy",), "ga1"),
        LabelledText("Thanks, you scared me half to death!", ("fear", "gratitude"), "ga2"),
        LabelledText('"Fine" she said, and it was not fine.', ("disapproval",), "ga3"),
        LabelledText('"never" he said, "ever"', ("annoyance",), "ga4"),
    ]


def test_every_fault_is_counted():
    assert report("goemotions", "train") == ({"unknown label": 3, "empty text": 1}, {})
    assert report("goemotions", "valid") == ({"wrong number of columns": 3}, {})
    assert report("goemotions", "test") == ({}, {})


def test_valid_is_the_publishers_dev_and_texts_keep_their_spaces():
    assert read("goemotions", "valid") == [LabelledText("  spaces are kept  ", ("neutral",), "gb1")]


def test_carriage_returns_at_line_ends_are_no_part_of_the_id():
    assert read("goemotions", "test") == [
        LabelledText("A grey day on the tram.", ("neutral",), "gc1"),
        LabelledText("Well... that was odd 🙃", ("curiosity", "surprise"), "gc2"),
    ]


def test_texts_without_conversations_give_no_examples():
    assert replies("goemotions", "train") == []


@quick
@given(
    text=lines_of_text("\t"),
    labels=st.lists(st.integers(0, 27), min_size=1, max_size=4, unique=True),
)
def test_any_line_of_text_comes_back_unchanged(scratch, text, labels):
    row = f"{written(text)}\t{','.join(map(str, labels))}\tid\n"
    (scratch / "train.tsv").write_bytes(row.encode())
    names = tuple(GOEMOTIONS[label] for label in labels)
    assert read("goemotions", "train", scratch) == [LabelledText(text, names, "id")]


@pytest.mark.parametrize("label", ["²", "1" * 5000, "-1", "1,,2"])
def test_a_label_that_is_no_number_is_skipped_and_counted(tmp_path, label):
    (tmp_path / "train.tsv").write_text(f"Text.\t{label}\tid\n")
    assert report("goemotions", "train", tmp_path) == ({"unknown label": 1}, {})


def test_a_line_that_is_not_utf8_is_skipped_and_counted(tmp_path):
    (tmp_path / "train.tsv").write_bytes(b"Caf\xe9\t27\ta\nTea\t27\tb\n")
    assert read("goemotions", "train", tmp_path) == [LabelledText("Tea", ("neutral",), "b")]
    assert report("goemotions", "train", tmp_path) == ({"not UTF-8": 1}, {})


def test_a_missing_file_is_an_error_with_the_download_command(tmp_path):
    assert reader("goemotions", tmp_path).available() == ()
    with pytest.raises(CorpusError, match=r"no .*dev\.tsv.*`listenwell corpus download goemotions`"):
        read("goemotions", "valid", tmp_path)


def test_texts_go_through_our_jsonl(tmp_path):
    items = read("goemotions", "train") + read("goemotions", "test")
    assert through_jsonl(items, tmp_path) == items

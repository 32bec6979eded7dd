import shutil

import pytest

from listenwell.dialogue import LabelledText
from listenwell.errors import CorpusError
from listenwell.labels import INTENTS, MANUAL_INTENTS

from .helpers import DATA, read, reader, report, through_jsonl

NAME = "empathetic_intents"
CORRECTED = {"label numbers corrected (neutral is 40, not 38)": 1}


def test_train_comes_out_as_written():
    assert read(NAME, "train") == [
        LabelledText("The floor creaked although I live alone.", ("afraid",), "train-train-1"),
        LabelledText("The shop is on the left.", ("neutral",), "train-train-2"),
        LabelledText("All the best, and good luck!", ("wishing",), "train-train-3"),
        LabelledText("Which of them, a <SEP> b?", ("questioning",), "train-train-4"),
    ]


def test_every_fault_is_counted():
    skipped = {"no label in front": 4, "empty text": 1, "empty line": 1}
    assert report(NAME, "train") == (skipped, CORRECTED)
    assert report(NAME, "manual") == ({"empty line": 1}, CORRECTED)


def test_carriage_returns_at_line_ends_are_no_part_of_the_text():
    assert read(NAME, "test") == [
        LabelledText("Perhaps try the stairs.", ("suggesting",), "test-test-1"),
        LabelledText("I am sorry about the vase.", ("sympathizing",), "test-test-2"),
    ]


def test_lexical_splits_hold_every_intent_and_neutral():
    for split in ("lexical_valid", "lexical_test"):
        assert [item.labels for item in read(NAME, split)] == [(n,) for n in sorted((*INTENTS, "neutral"))]
        assert report(NAME, split) == ({}, CORRECTED)
    train = read(NAME, "lexical_train")
    assert len(train) == 10
    assert train[0] == LabelledText(
        "I see what you mean.", ("acknowledging",), "lexical_train-acknowledging-1"
    )


def test_the_manual_split_is_labelled_by_its_file_names():
    items = read(NAME, "manual")
    assert [item.labels for item in items[:-1]] == [(name,) for name in MANUAL_INTENTS]
    assert items[-2:] == [
        LabelledText("A line that is wishing.", ("wishing",), "manual-wishing-1"),
        LabelledText("Another, by hand", ("wishing",), "manual-wishing-3"),
    ]


def test_without_labels_txt_the_published_numbers_hold(tmp_path):
    shutil.copy(DATA / NAME / "train.txt", tmp_path)
    assert read(NAME, "train", tmp_path) == read(NAME, "train")
    assert report(NAME, "train", tmp_path)[1] == {}


@pytest.mark.parametrize("line", ["afraid,1", "bored,0", "afraid", "questioning,40", "neutral,39"])
def test_another_numbering_is_an_error(tmp_path, line):
    shutil.copy(DATA / NAME / "train.txt", tmp_path)
    (tmp_path / "labels.txt").write_text(f"\n{line}\n")
    with pytest.raises(CorpusError, match=rf"labels\.txt:2 says '{line}'"):
        read(NAME, "train", tmp_path)


def test_a_right_last_line_needs_no_correction(tmp_path):
    shutil.copy(DATA / NAME / "train.txt", tmp_path)
    (tmp_path / "labels.txt").write_text("questioning,38\nneutral,40\n")
    assert report(NAME, "train", tmp_path)[1] == {}


@pytest.mark.parametrize("label", ["²", "1" * 5000, "-1"])
def test_a_label_that_is_no_number_is_skipped_and_counted(tmp_path, label):
    (tmp_path / "train.txt").write_text(f"{label} <SEP> Text.\n")
    assert report(NAME, "train", tmp_path) == ({"no label in front": 1}, {})


def test_a_split_is_available_only_with_all_its_files(tmp_path):
    every = ("train", "valid", "test", "lexical_train", "lexical_valid", "lexical_test", "manual")
    assert reader(NAME).available() == every
    shutil.copytree(DATA / NAME, tmp_path / NAME)
    (tmp_path / NAME / "lexical" / "validation" / "wishing.txt").unlink()
    (tmp_path / NAME / "manual" / "advising.txt").unlink()
    left = tuple(split for split in every if split not in ("lexical_valid", "manual"))
    assert reader(NAME, tmp_path / NAME).available() == left


@pytest.mark.parametrize(
    ("split", "file"), [("train", r"train\.txt"), ("manual", r"acknowledging\.txt"), ("lexical_valid", "ack")]
)
def test_a_missing_file_is_an_error_with_the_download_command(tmp_path, split, file):
    with pytest.raises(CorpusError, match=rf"no .*{file}.*`listenwell corpus download empathetic_intents`"):
        read(NAME, split, tmp_path)


def test_texts_go_through_our_jsonl(tmp_path):
    items = read(NAME, "train") + read(NAME, "manual")
    assert through_jsonl(items, tmp_path) == items

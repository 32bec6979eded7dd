from collections import Counter

import pytest

from listenwell.corpora import CORPORA, Report
from listenwell.corpora.base import csv_rows, text_lines
from listenwell.errors import CorpusError, UnknownNameError

from .helpers import NAMES


def test_a_report_counts_reasons_and_keeps_the_first_place():
    report = Report()
    report.skip("empty", "a:1")
    report.skip("empty", "a:7")
    report.skip("odd", "a:3")
    report.counts["rows repaired"] = 4
    assert report.skipped == Counter({"empty": 2, "odd": 1})
    assert report.lines() == [
        "4 rows repaired",
        "skipped 2: empty (first at a:1)",
        "skipped 1: odd (first at a:3)",
    ]


def test_lines_end_at_line_feeds_only(tmp_path):
    file = tmp_path / "file"
    file.write_bytes("a\u2028b\x85c\x0c\r\n\nlast".encode())
    assert list(text_lines(file, Report())) == [(1, "a\u2028b\x85c\x0c"), (2, ""), (3, "last")]


def test_a_line_that_is_not_utf8_is_counted_with_its_place(tmp_path):
    file, report = tmp_path / "file", Report()
    file.write_bytes(b"a\n\xff\nb\n\xfe")
    assert list(text_lines(file, report)) == [(1, "a"), (3, "b")]
    assert (report.skipped, report.first) == (Counter({"not UTF-8": 2}), {"not UTF-8": "file:2"})


def test_csv_rows_skip_what_is_short_broken_or_not_utf8(tmp_path):
    file, report = tmp_path / "file.csv", Report()
    long = b"x" * 140_000
    file.write_bytes(b'a,b\n1,"two\n2"\nshort\n' + long + b",2\n\x80,2\n2,\xff\n3,4,5\n")
    rows = [(where, row["a"], row["b"]) for where, row in csv_rows(file, ("a", "b"), report)]
    assert rows == [("file.csv:3", "1", "two\n2"), ("file.csv:8", "3", "4")]
    assert report.skipped == Counter(
        {
            "wrong number of columns": 1,
            "broken row: field larger than field limit (131072)": 1,
            "not UTF-8": 2,
        }
    )


@pytest.mark.parametrize("content", [b"", b"\n", b"a;b\n", b"\xff\xfe\x00\n", b"x" * 140_000])
def test_a_file_without_the_columns_is_not_the_corpus(tmp_path, content):
    file = tmp_path / "file.csv"
    file.write_bytes(content)
    with pytest.raises(CorpusError, match=r"file\.csv"):
        list(csv_rows(file, ("a", "b"), Report()))


@pytest.mark.parametrize("name", NAMES)
def test_without_a_path_a_corpus_is_looked_for_in_the_data_folder(tmp_path, monkeypatch, name):
    monkeypatch.setenv("LISTENWELL_DATA", str(tmp_path))
    reader = CORPORA.load(name)()
    assert reader.path.parent == tmp_path
    assert reader.available() == ()
    assert all(tmp_path in file.parents for split in reader.splits for file in reader.files(split))


@pytest.mark.parametrize("name", NAMES)
def test_a_corpus_says_what_it_is(name):
    reader = CORPORA.load(name)
    assert reader.name == name
    assert reader.title and reader.licence and reader.splits
    assert reader.citation or name == "jsonl"


@pytest.mark.parametrize("name", NAMES)
def test_an_unknown_split_is_an_error_with_the_known_ones(tmp_path, name):
    reader = CORPORA.load(name)(tmp_path)
    with pytest.raises(
        UnknownNameError, match=f"no split of {name} named 'zzz'. Known: {reader.splits[0]}, "
    ):
        reader.check("zzz")


@pytest.mark.parametrize("name", NAMES)
def test_a_missing_corpus_is_an_error_that_says_how_to_get_it(tmp_path, name):
    reader = CORPORA.load(name)(tmp_path / "nowhere")
    with pytest.raises(CorpusError) as caught:
        reader.check("valid")
    advice = f"`listenwell corpus download {name}`" if reader.downloads else reader.obtain
    assert advice in caught.value.advice
    assert "--path or LISTENWELL_DATA" in caught.value.advice

import hashlib
import tarfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from listenwell.corpora.newsgroups import ARCHIVE, Newsgroups, cleaned, split_of
from listenwell.dialogue import LabelledText
from listenwell.errors import CorpusError
from listenwell.labels import NEWSGROUPS

from .helpers import DATA, quick, read, reader, report, through_jsonl

NAME = "newsgroups"
TRAIN, TEST = "20news-bydate-train", "20news-bydate-test"


def write(folder, content, place=f"{TEST}/sci.med/1"):
    (folder / place).parent.mkdir(parents=True, exist_ok=True)
    (folder / place).write_bytes(content)
    return folder


def packed(source, folder, names=(TEST, TRAIN)):
    """The folders as the publisher's archive, which holds the test posts first."""
    with tarfile.open(folder / ARCHIVE, "w:gz") as archive:
        for name in names:
            archive.add(source / name, name)
    return folder


def test_train_comes_out_as_written():
    texts = {item.id: (item.labels, item.text) for item in read(NAME, "train")}
    assert list(texts) == [
        "comp.graphics/37001",
        "comp.graphics/37002",
        "rec.autos/99",
        "rec.autos/101001",
        "rec.autos/101002",
        "rec.sport.hockey/52001",
        "rec.sport.hockey/52002",
        "sci.med/58001",
        "sci.med/58002",
        "sci.space/60010",
        "sci.space/60020",
    ]
    assert texts["rec.autos/101002"] == (("rec.autos",), "Not on ice: my car slid past the bend.")
    assert texts["rec.sport.hockey/52002"][1] == "That puck was in, goalie or not."
    # The letter is one byte in Latin-1; "said:" attributes something only at the end of a line.
    assert texts["sci.med/58002"][1].splitlines()[0] == "The doctor at the café said: no coffee before sleep."
    # Dashes in the middle of a table end nothing.
    assert texts["comp.graphics/37001"][1].endswith("many      smooth\n\nMore polygons or better shading?")


def test_valid_holds_whole_threads():
    assert read(NAME, "valid") == [
        LabelledText("The brakes of the car squeal on the hill.", ("rec.autos",), "rec.autos/101010"),
        LabelledText(
            "Our club lit a small rocket on the lake.\nIt flew into orbit, or so we dream.",
            ("sci.space",),
            "sci.space/60001",
        ),
        LabelledText(
            "Which fuel does the rocket burn? An orbit needs more.", ("sci.space",), "sci.space/60002"
        ),
    ]


def test_line_ends_of_other_systems_are_read_alike():
    assert read(NAME, "test")[1] == LabelledText(
        "How long is an orbit around the moon?\nThe rocket club asks.", ("sci.space",), "sci.space/61001"
    )


def test_every_fault_is_counted():
    always = {"unknown group": 1, "file name is no number": 1, "not a text": 1}
    assert report(NAME, "train") == (always | {"no words of its own": 2}, {})
    assert report(NAME, "valid") == (always, {})
    assert report(NAME, "test") == ({}, {})


def test_the_archive_gives_the_same_as_the_folders(tmp_path):
    packed(DATA / NAME, tmp_path)
    assert reader(NAME, tmp_path).available() == ("train", "valid", "test")
    for split in ("train", "valid", "test"):
        assert read(NAME, split, tmp_path) == read(NAME, split)
        assert report(NAME, split, tmp_path) == report(NAME, split)


def test_the_files_of_a_split_are_its_posts_or_the_archive(tmp_path):
    places = {file.relative_to(DATA / NAME).parts[0] for file in reader(NAME).files("valid")}
    assert (places, len(reader(NAME).files("valid"))) == ({TRAIN}, 19)
    assert reader(NAME, packed(DATA / NAME, tmp_path)).files("test") == (tmp_path / ARCHIVE,)


@pytest.mark.parametrize("content", [b"", b"no archive", b"\x1f\x8b\x08\x00"])
def test_an_archive_that_cannot_be_read_is_a_clear_error(tmp_path, content):
    (tmp_path / ARCHIVE).write_bytes(content)
    with pytest.raises(CorpusError, match=r"no archive that can be read.*download it again"):
        read(NAME, "test", tmp_path)


def test_an_archive_that_broke_off_is_a_clear_error(tmp_path):
    packed(DATA / NAME, tmp_path)
    whole = (tmp_path / ARCHIVE).read_bytes()
    (tmp_path / ARCHIVE).write_bytes(whole[: len(whole) // 2])
    with pytest.raises(CorpusError, match="no archive that can be read"):
        read(NAME, "train", tmp_path)


def test_a_member_that_points_outside_is_never_followed(tmp_path):
    (tmp_path / "secret").write_text("Subject: s\n\nsecret\n")
    with tarfile.open(tmp_path / ARCHIVE, "w:gz") as archive:
        link = tarfile.TarInfo(f"{TEST}/sci.med/1")
        link.type, link.linkname = tarfile.SYMTYPE, str(tmp_path / "secret")
        archive.addfile(link)
        archive.add(tmp_path / "secret", f"../{TEST}/sci.med/2")
    assert read(NAME, "test", tmp_path) == []


@pytest.mark.parametrize("subject", ["Rocket fuel", "", "Re: x", "Café", "re:re: A  b"])
def test_the_split_goes_by_a_hash_of_the_subject(subject):
    plain = {"Re: x": "x", "re:re: A  b": "a b"}.get(subject, subject.lower())
    place = int(hashlib.sha256(plain.encode()).hexdigest()[:8], 16) % 100
    assert split_of(subject) == ("valid" if place < 10 else "train")
    assert split_of(f" RE: {subject} ") == split_of(subject)


def test_the_shares_of_the_splits_are_90_and_10():
    found = [split_of(str(number)) for number in range(10_000)]
    assert [round(found.count(name) / 100) for name in ("train", "valid")] == [90, 10]


def test_a_post_without_a_subject_goes_by_its_place(tmp_path):
    for number in range(40):
        write(tmp_path, b"From: a\n\nWords.\n", f"{TRAIN}/sci.med/{number}")
    ids = [item.id for item in read(NAME, "valid", tmp_path)]
    assert ids == [f"sci.med/{n}" for n in range(40) if split_of(f"sci.med/{n}") == "valid"]
    assert 0 < len(ids) < 20


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("a\n> b\nc", "a\nc"),
        ("  JD>> b\na", "a"),
        ("| b\n: b\n:-) a", ":-) a"),
        ("ABCD> a", "ABCD> a"),
        ("In article <1@x> a\nwrites:\nb", "b"),
        ("In article 5 of the law it stands.", "In article 5 of the law it stands."),
        ("a\n--\nb\n", "a"),
        ("a\n-- \n" + "b\n" * 10, "a"),
        ("a\n-- \n" + "b\n" * 11, "a\n-- \n" + "b\n" * 10 + "b"),
        ("a\n---\nb\n--\nc", "a\n---\nb"),
        ("--\n", ""),
    ],
)
def test_quotes_and_signatures_go_by_the_rule(body, text):
    assert cleaned(body) == text


@quick
@given(content=st.binary(max_size=200), head=st.sampled_from([b"", b"Subject: a\n\n", b"\n\n"]))
def test_random_bytes_never_crash_the_reader(scratch, content, head):
    one = Newsgroups(write(scratch, head + content))
    items = list(one.read("test"))
    assert len(items) + sum(one.report.skipped.values()) == 1
    assert all(item.from_json(item.to_json()) == item for item in items)


def test_a_missing_corpus_is_an_error_with_the_download_command(tmp_path):
    with pytest.raises(
        CorpusError, match=r"no .*20news-bydate\.tar\.gz.*`listenwell corpus download newsgrou"
    ):
        read(NAME, "test", tmp_path)


def test_there_are_twenty_groups_in_the_order_of_their_names():
    assert len(NEWSGROUPS) == 20
    assert list(NEWSGROUPS) == sorted(NEWSGROUPS)


def test_texts_go_through_our_jsonl(tmp_path):
    items = read(NAME, "train") + read(NAME, "test")
    assert through_jsonl(items, tmp_path) == items

import builtins
import json
import shutil

import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from listenwell.dialogue import Dialogue, Persona, Turn
from listenwell.errors import CorpusError, MissingExtraError

from .helpers import DATA, lines_of_text, quick, read, reader, replies, report, through_jsonl

END = "*" * 20
ANNA = Persona("anna", ("I grow roses.", "I have two cats."))
FINN = Persona("finn", ("I am a nurse.",))


def thread(identity, *turns, persona=None):
    said = tuple(Turn(*turn) for turn in turns)
    return Dialogue(said, identity, (persona,) if persona else (), turns[-1][0])


HAPPY = [
    thread(
        "happy-train-1",
        ("ben", "My bread rose today! It even has a crust."),
        ("anna", "Well done, ben."),
        persona=ANNA,
    ),
    thread(
        "happy-train-2",
        ("cleo", "I passed."),
        ("ben", "Hooray for you and for your teachers!"),
        ("cleo", "Thank you---+---both"),
    ),
]
OFFMYCHEST = [
    thread(
        "offmychest-train-1",
        ("gus", "I quit."),
        ("finn", "Good for you."),
        ("gus", "Is it?"),
        ("finn", "Sleep on it."),
        persona=FINN,
    )
]
FAULTS = {
    "persona without its end": 1,
    "line outside of a block": 1,
    "block without a reply": 2,
    "A turn needs a speaker's name, not ''.": 1,
    "block without its end": 1,
}
RECORDS = [
    {
        "personas": ["I grow roses.", "I have two cats."],
        "context": ["My bread rose today!", "Show us.", "Here it is."],
        "context_speakers": ["ben", "anna", "ben"],
        "response": "Well done, ben.",
        "response_speaker": "anna",
    },
    {
        "personas": [],
        "context": ["I passed."],
        "context_speakers": ["cleo"],
        "response": "Hooray!",
        "response_speaker": "dora",
    },
]


def dialogues(prefix):
    return [
        thread(
            f"{prefix}-1",
            ("ben", "My bread rose today!"),
            ("anna", "Show us."),
            ("ben", "Here it is."),
            ("anna", "Well done, ben."),
            persona=ANNA,
        ),
        thread(f"{prefix}-2", ("cleo", "I passed."), ("dora", "Hooray!")),
    ]


def write_parquet(file, records):
    file.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(pyarrow.Table.from_pylist(records), file)


def write_released(folder, text, persona=f"anna\n{END}\n"):
    (folder / "happy").mkdir(exist_ok=True)
    (folder / "happy" / "train.txt").write_bytes(text.encode())
    (folder / "happy" / "persona.txt").write_bytes(persona.encode())


def write_jsonl(folder, *lines):
    (folder / "happy").mkdir(exist_ok=True)
    (folder / "happy" / "train.jsonl").write_text("".join(f"{line}\n" for line in lines))


def test_the_released_files_come_out_happy_first():
    assert read("pec", "train") == HAPPY + OFFMYCHEST
    assert report("pec", "train") == (FAULTS, {})


def test_each_community_can_be_read_alone():
    assert read("pec_happy", "train", "pec") == HAPPY
    assert report("pec_happy", "train", "pec") == (FAULTS, {})
    assert read("pec_offmychest", "train", "pec") == OFFMYCHEST
    assert report("pec_offmychest", "train", "pec") == ({}, {})


def test_carriage_returns_at_line_ends_are_no_part_of_the_text():
    assert read("pec_offmychest", "valid", "pec") == [
        thread("offmychest-valid-1", ("gus", "I miss her."), ("finn", "Tell her."), persona=FINN)
    ]


def test_only_the_last_turn_of_a_record_is_an_example():
    assert replies("pec", "train") == [
        (1, "anna", "Well done, ben."),
        (2, "cleo", "Thank you---+---both"),
        (3, "finn", "Sleep on it."),
    ]


def test_released_files_need_their_personas(tmp_path):
    write_released(tmp_path, "")
    (tmp_path / "happy" / "persona.txt").unlink()
    with pytest.raises(CorpusError, match=r"persona\.txt"):
        read("pec_happy", "train", tmp_path)


@quick
@given(
    texts=st.lists(lines_of_text().filter(lambda text: END not in text), min_size=2, max_size=5),
    persona=lines_of_text().filter(lambda text: END not in text),
)
def test_any_line_of_text_comes_back_from_the_released_form(scratch, texts, persona):
    turns = [(("anna", "ben")[i % 2], text) for i, text in enumerate(texts)]
    block = "".join(f"{speaker}---+---{text}\n" for speaker, text in turns)
    author = turns[-1][0]
    write_released(scratch, f"{block}{END}\n", f"{author}\n{persona}\n{END}\n")
    expected = thread("happy-train-1", *turns, persona=Persona(author, (persona,)))
    assert read("pec_happy", "train", scratch) == [expected]


def test_jsonl_records_come_out_exactly():
    assert read("pec", "train", "pec_jsonl") == [
        *dialogues("happy-train"),
        thread("offmychest-train-1", ("gus", "I quit."), ("finn", "Sleep on it."), persona=FINN),
    ]
    assert report("pec", "train", "pec_jsonl") == (
        {
            "a record's context and its speakers differ in number": 1,
            "not JSON": 1,
            "record without 'personas'": 1,
            "A turn needs text, not ' '.": 1,
            "record without list indices must be integers or slices, not str": 1,
        },
        {},
    )


def test_the_hub_calls_valid_validation():
    assert [dialogue.id for dialogue in read("pec", "valid", "pec_jsonl")] == [
        "happy-validation-1",
        "offmychest-validation-1",
    ]


@pytest.mark.parametrize("key", ["personas", "context", "context_speakers"])
def test_a_text_where_a_list_belongs_does_not_fall_into_letters(tmp_path, key):
    texts = {key: "ab", **({"context": ["a", "b"]} if key == "context_speakers" else {})}
    texts |= {"context_speakers": ["a", "b"]} if key == "context" else {}
    write_jsonl(tmp_path, json.dumps(RECORDS[1] | texts))
    assert read("pec_happy", "train", tmp_path) == []


@pytest.mark.parametrize(
    "line", ["5", "null", '"text"', "{}", json.dumps(RECORDS[1] | {"context": None}), '{"personas": 3}']
)
def test_a_record_of_the_wrong_shape_is_skipped_and_the_next_read(tmp_path, line):
    write_jsonl(tmp_path, line, json.dumps(RECORDS[1]))
    assert len(read("pec_happy", "train", tmp_path)) == 1
    assert list(report("pec_happy", "train", tmp_path)[0].values()) == [1]


def test_json_nested_without_end_is_skipped_and_counted(tmp_path):
    write_jsonl(tmp_path, "[" * 100_000, json.dumps(RECORDS[1]))
    assert len(read("pec_happy", "train", tmp_path)) == 1
    assert report("pec_happy", "train", tmp_path) == ({"not JSON": 1}, {})


@pytest.mark.parametrize("name", ["train.parquet", "train-00000-of-00001.parquet", "pec-train.parquet"])
def test_parquet_records_come_out_exactly(tmp_path, name):
    write_parquet(tmp_path / "happy" / name, RECORDS)
    stem = name.removesuffix(".parquet")
    assert read("pec_happy", "train", tmp_path) == dialogues(f"happy-{stem}")
    assert report("pec_happy", "train", tmp_path) == ({}, {})


def test_all_parts_of_a_parquet_split_are_read_in_order(tmp_path):
    for part in (1, 0):
        write_parquet(tmp_path / "happy" / f"train-0000{part}-of-00002.parquet", RECORDS[part : part + 1])
    assert [dialogue.id for dialogue in read("pec_happy", "train", tmp_path)] == [
        "happy-train-00000-of-00002-1",
        "happy-train-00001-of-00002-1",
    ]


def test_a_parquet_file_of_other_columns_gives_nothing_but_counts(tmp_path):
    write_parquet(tmp_path / "happy" / "train.parquet", [{"text": "a"}, {"text": "b"}])
    one = reader("pec_happy", tmp_path)
    assert list(one.read("train")) == []
    assert one.report.skipped == {"record without 'context'": 2}
    assert one.report.first == {"record without 'context'": "train.parquet row 1"}


def test_a_parquet_file_that_was_cut_off_is_an_error_that_says_so(tmp_path):
    file = tmp_path / "happy" / "train.parquet"
    write_parquet(file, RECORDS)
    file.write_bytes(file.read_bytes()[:-20])
    with pytest.raises(CorpusError, match=r"not a whole Parquet file.*Download it again"):
        read("pec_happy", "train", tmp_path)


def test_a_parquet_file_damaged_in_the_middle_is_an_error_that_says_so(tmp_path):
    file = tmp_path / "happy" / "train.parquet"
    write_parquet(file, RECORDS)
    content = bytearray(file.read_bytes())
    content[4:400] = b"\xff" * 396
    file.write_bytes(content)
    with pytest.raises(CorpusError, match="not a whole Parquet file"):
        read("pec_happy", "train", tmp_path)


def test_without_pyarrow_the_error_holds_the_install_command(tmp_path, monkeypatch):
    write_parquet(tmp_path / "happy" / "train.parquet", RECORDS)
    usual = builtins.__import__

    def without_pyarrow(name, *arguments, **keywords):
        if name.startswith("pyarrow"):
            raise ModuleNotFoundError(name)
        return usual(name, *arguments, **keywords)

    monkeypatch.setattr(builtins, "__import__", without_pyarrow)
    with pytest.raises(MissingExtraError, match=r"pip install 'listenwell\[parquet\]'"):
        read("pec_happy", "train", tmp_path)


def test_a_split_is_available_where_every_community_has_it(tmp_path):
    assert reader("pec").available() == ("train", "valid")
    assert reader("pec_happy", "pec").available() == ("train", "valid", "test")
    shutil.copytree(DATA / "pec" / "happy", tmp_path / "happy")
    assert reader("pec", tmp_path).available() == ()


@pytest.mark.parametrize("name", ["pec", "pec_happy", "pec_offmychest"])
def test_a_missing_file_is_an_error_with_the_download_command(tmp_path, name):
    with pytest.raises(CorpusError, match=f"`listenwell corpus download {name}`"):
        read(name, "test", tmp_path)


@pytest.mark.parametrize("folder", ["pec", "pec_jsonl"])
def test_dialogues_go_through_our_jsonl(tmp_path, folder):
    items = read("pec", "train", folder)
    assert through_jsonl(items, tmp_path) == items

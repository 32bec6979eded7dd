import json
from dataclasses import replace
from pathlib import Path

import pytest

from listenwell.annotators import inputs
from listenwell.annotators.inputs import LineSource, find_source
from listenwell.dialogue import Dialogue, LabelledText, Turn
from listenwell.errors import CorpusError, InputError, UnknownNameError
from listenwell.labels import EMOTION_GROUPS

from .fake import lines as numbered
from .fake import said

SAMPLES = Path(__file__).parents[1] / "data"
FIELDS = "Its fields: turns, id, personas, listener, situation, emotion, notes."


def read(tmp_path, content, name="in.txt"):
    """The dialogues of a file with this content, and the lines of the report."""
    file = tmp_path / name
    file.write_bytes(content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content)
    source = find_source(str(file))
    return list(source), source.report.lines()


def test_each_line_of_a_text_is_what_the_speaker_says(tmp_path):
    text = (
        "I am sad.\r\n\n  \t\n  indented, a\u2028b\x0bc\u00a0\n[SEP] <|im_end|> [bold]x\nNUL \0 and 🙂\nlast"
    )
    assert read(tmp_path, text) == (
        numbered(
            {
                1: "I am sad.",
                4: "  indented, a\u2028b\x0bc\u00a0",
                5: "[SEP] <|im_end|> [bold]x",
                6: "NUL \0 and 🙂",
                7: "last",
            }
        ),
        [],
    )


def test_jsonl_holds_dialogues_and_texts(tmp_path):
    dialogue = Dialogue((Turn("ann", "Hi."), Turn("bob", "Hello.")), "d", listener="bob")
    lines = [
        "",
        dialogue.to_json(),
        '{"text": "alone"}',
        '{"text": "named", "id": "t1"}',
        LabelledText("labelled", ("joy", "relief"), "t2").to_json(),
        r'{"text": "lone \ud800 surrogate, NUL \u0000, [CLS]"}',
    ]
    found, report = read(tmp_path, "\n".join(lines))
    assert found == [
        dialogue,
        *numbered({3: "alone"}),
        replace(said("named")[0], id="t1"),
        replace(said("labelled")[0], id="t2", notes=(("labels", "joy, relief"),)),
        *numbered({6: "lone \ud800 surrogate, NUL \0, [CLS]"}),
    ]
    assert report == []


def test_broken_lines_are_skipped_and_counted_with_their_first_numbers(tmp_path):
    lines = [b'{"text": "good"}', b"plain", b'{"text": "\xff"}', b'{"text": " "}', b'{"labels": []}']
    lines += [b"[" * 100_000, b'{"turns": []}', b'{"text": 5}', b"7", b'{"txt": "x"}', b'{"text": "end"}']
    lines += [b"broken"] * 6
    found, report = read(tmp_path, b"\n".join(lines))
    assert found == numbered({1: "good", 11: "end"})
    assert report == [
        "skipped 8: not JSON (lines 2, 6, 12, 13, 14, …)",
        "skipped 1: not UTF-8 (line 3)",
        "skipped 1: A labelled text needs text, not ' '. Leave empty lines out. (line 4)",
        f"skipped 1: Dialogue has no field 'labels'. {FIELDS} (line 5)",
        "skipped 1: The dialogue '' has no turns. Give it at least one. (line 7)",
        "skipped 1: text must be text, not int 5. Correct text. (line 8)",
        f"skipped 1: Dialogue must be an object with named fields, not int 7. {FIELDS} (line 9)",
        f"skipped 1: Dialogue has no field 'txt'. {FIELDS} (line 10)",
    ]


def test_a_line_that_is_both_dialogue_and_text_is_broken(tmp_path):
    line = '{"turns": [{"speaker": "a", "text": "x"}], "text": "y"}'
    found, report = read(tmp_path, line)
    assert found == []
    assert "Dialogue has no field 'text'" in report[0]


def test_reasons_that_quote_the_lines_do_not_fill_the_memory(tmp_path):
    lines = "\n".join(f'{{"{number}{"x" * 5_000}": 1}}' for number in range(100))
    found, report = read(tmp_path, lines)
    assert found == [] and len(report) == 21
    assert report[0].startswith("skipped 80: broken in other ways (lines 21, 22, 23, 24, 25, …)")
    assert max(map(len, report)) < 300


def test_a_line_without_end_is_skipped_and_never_held(tmp_path, monkeypatch):
    monkeypatch.setattr(inputs, "LONGEST", 20)
    fits = "x" * 20
    for content in (f"\ufeff{'y' * 18}\n{fits}\n{'z' * 21}\n{'z' * 500}\nok\n{'z' * 21}", f"{fits}\nok"):
        found, report = read(tmp_path, content)
        assert found == numbered({2: fits, 5: "ok"} if "z" in content else {1: fits, 2: "ok"})
        assert report == (["skipped 4: longer than 20 bytes (lines 1, 3, 4, 6)"] if "z" in content else [])


def test_a_huge_line_costs_little_memory(tmp_path):
    import tracemalloc

    file = tmp_path / "in.txt"
    file.write_bytes(b"x" * (30 * 10**6) + b"\nok\n")
    tracemalloc.start()
    assert list(LineSource(file)) == numbered({2: "ok"})
    assert tracemalloc.get_traced_memory()[1] < 10 * 10**6
    tracemalloc.stop()


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b'\xef\xbb\xbf\n \xc2\xa0\n  {"text": "x"}\n', {3: "x"}),
        (b'\xef\xbb\xbfI am\n{"text": "x"}\n', {1: "I am", 2: '{"text": "x"}'}),
        (b'{\xff\n{"text": "x"}\n', {2: "x"}),
        (b"\xff\nI am\n", {2: "I am"}),
        (b"[laughs] I am\n[]\n", {1: "[laughs] I am", 2: "[]"}),
        (b"", {}),
        (b"\n\n  \n", {}),
    ],
)
def test_the_first_character_tells_jsonl_from_text(tmp_path, content, expected):
    assert read(tmp_path, content)[0] == numbered(expected)


@pytest.mark.parametrize("name", ["in.jsonl", "in.JSON"])
@pytest.mark.parametrize("first", ["broken", '"text"', "7", '{"text": '])
def test_a_file_named_so_is_jsonl_whatever_its_first_line(tmp_path, name, first):
    found, report = read(tmp_path, f'\n{first}\n{{"text": "x"}}\n', name)
    assert found == numbered({3: "x"})
    assert len(report) == 1 and "(line 2)" in report[0]


@pytest.mark.parametrize(
    ("content", "name"),
    [
        ('[{"text": "x"}]', "in.txt"),
        ('\n [\n{"text": "x"},\n{"text": "y"}]', "in.txt"),
        ('["I am sad"]', "in"),
        ("[]", "in.txt"),
        ("[laughs]", "in.jsonl"),
        ("[1]", "in.json"),
    ],
)
def test_a_json_array_is_named(tmp_path, content, name):
    with pytest.raises(InputError, match=r"is one JSON array.*Write one JSON object a line"):
        read(tmp_path, content, name)


def reading(head, label, probability=0.5):
    score = {"label": label, "probability": probability}
    turn = {"speaker": "a", "text": "x", "readings": [{"head": head, "scores": [score]}]}
    return json.dumps({"turns": [turn], "id": "r"})


@pytest.mark.parametrize("path", [False, True])
def test_lines_with_odd_readings_are_skipped(tmp_path, path):
    odd = [
        reading("act", "shouting"),
        reading("exploration", "2"),
        reading("emotion_group", "annoyed"),
        reading("act", "wishing", 1.5),
        reading("mine", "x", float("nan")),
        reading("", "x"),
        reading("act", "x").replace('{"label": "x", "probability": 0.5}', ""),
    ]
    kept = [reading("act", "wishing", 1), reading("emotion_group", EMOTION_GROUPS[0]), reading("mine", "odd")]
    file = tmp_path / "in.jsonl"
    file.write_text("\n".join([*odd, *kept]))
    source = find_source("jsonl", path=file) if path else find_source(str(file))
    assert [one.turns[0].readings[0].head for one in source] == ["act", "emotion_group", "mine"]
    assert source.report.skipped.total() == len(odd)
    report = " ".join(source.report.lines())
    for reason in ("'shouting'", "'annoyed'", "probability 1.5", "probability nan", "has no scores"):
        assert reason in report


def test_utf16_is_named(tmp_path):
    with pytest.raises(InputError, match=r"is UTF-16, not UTF-8\. Save it as UTF-8"):
        read(tmp_path, "I am sad".encode("utf-16"))


def test_a_corpus_is_read_split_by_split_and_each_dialogue_says_which(monkeypatch):
    monkeypatch.setenv("LISTENWELL_DATA", str(SAMPLES))
    source = find_source("empathetic_dialogues")
    found = list(source)
    expected = [
        replace(dialogue, notes=(*dialogue.notes, ("split", split)))
        for split in ("train", "valid", "test")
        for dialogue in source.reader.read(split)
    ]
    assert found == expected and len({dialogue.note("split") for dialogue in found}) == 3
    assert list(find_source("empathetic_dialogues", "valid")) == [
        one for one in expected if one.note("split") == "valid"
    ]


def test_labelled_texts_of_a_corpus_become_turns(monkeypatch):
    monkeypatch.setenv("LISTENWELL_DATA", str(SAMPLES))
    source = find_source("goemotions", "valid")
    texts = list(source.reader.read("valid"))
    assert [(one.turns, one.id, one.note("labels")) for one in source] == [
        ((Turn("speaker", one.text),), one.id, ", ".join(one.labels)) for one in texts
    ]


def test_a_note_of_the_split_that_was_there_stays(tmp_path):
    file = tmp_path / "own.jsonl"
    noted = replace(said("x")[0], notes=(("split", "train"),))
    file.write_text(noted.to_json() + "\n" + said("y")[0].to_json() + "\n")
    assert [one.note("split") for one in find_source("jsonl", path=file)] == ["train", "all"]


def test_a_corpus_wins_over_a_file_of_its_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LISTENWELL_DATA", str(SAMPLES))
    for name in ("goemotions", "diary"):
        (tmp_path / name).write_text("I am a file")
    assert find_source("goemotions").name == "goemotions"
    assert list(find_source("./goemotions")) == list(find_source("diary")) == numbered({1: "I am a file"})


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (
            ("goemotion",),
            InputError,
            "no file and no corpus named 'goemotion'. Did you mean the corpus 'goem",
        ),
        (("zzz/y.txt",), InputError, "`listenwell corpus list` shows the corpora. - reads standard input"),
        (("x" * 5000,), InputError, "no file and no corpus"),
        ((".",), InputError, "is a folder. Name a file, or"),
        (("-", "train"), InputError, "--split and --path belong to a corpus, and '-' is none"),
        (("goemotions", "dev"), UnknownNameError, "no split of goemotions named 'dev'"),
        (("goemotions",), CorpusError, "listenwell corpus download goemotions"),
    ],
)
def test_a_source_that_is_not_there_is_named(arguments, error, message):
    with pytest.raises(error) as raised:
        find_source(*arguments)
    assert message in str(raised.value)

from dataclasses import replace

import pytest
from hypothesis import assume, given

from listenwell.dialogue import Dialogue, Factors, Turn
from listenwell.errors import CorpusError, UnknownNameError

from .helpers import lines_of_text, quick, read, reader, replies, report, talk, through_jsonl

ED, LABELLED = "empathetic_dialogues", "empathetic_dialogues_labels"
HEADER = "conv_id,utterance_idx,context,prompt,speaker_idx,utterance,selfeval,tags\n"


def workers(speaker, listener):
    return (("listener_worker", str(listener)), ("speaker_worker", str(speaker)))


TOMATOES = talk(
    "My neighbour kept my tomatoes alive, every single day!",
    '"What a kind person" is all I can say.',
    'She only said "no trouble and left a jar of soup.',
    "Will you bring her some, when they are ripe?",
    id="hit:1_conv:2",
    situation="My neighbour watered my tomatoes, all summer.",
    emotion="grateful",
    notes=workers(11, 12),
)
LIFT = talk(
    "I sat in a dark lift on Tuesday.",
    "Oh no, for how long, exactly?",
    "Two hours, I think",
    id="hit:3_conv:4",
    situation="The lift stopped, and then the lamp went out.",
    emotion="afraid",
    notes=workers(7, 8),
)
CHESS = talk(
    "Nobody came to my chess evening.",
    "I would have come and lost to you.",
    id="hit:7_conv:8",
    emotion="lonely",
    notes=workers(21, 22),
)


def write(folder, *rows, name="train.csv"):
    (folder / name).write_bytes((HEADER + "".join(f"{row}\n" for row in rows)).encode())
    return folder


def escaped(text):
    return text.replace(",", "_comma_")


def test_train_comes_out_as_written():
    assert read(ED, "train") == [TOMATOES, LIFT, CHESS]


def test_every_fault_of_train_is_counted_once():
    assert report(ED, "train") == (
        {
            "empty utterance": 1,
            "unknown emotion": 1,
            "no turn number": 1,
            "wrong number of columns": 1,
            "row of a conversation that ended before": 1,
        },
        {"shifted rows repaired": 3},
    )


def test_the_report_says_where_each_fault_was_met_first():
    one = reader(ED)
    list(one.read("train"))
    assert one.report.first == {
        "empty utterance": "train.csv:9",
        "unknown emotion": "train.csv:10",
        "no turn number": "train.csv:11",
        "wrong number of columns": "train.csv:12",
        "row of a conversation that ended before": "train.csv:16",
    }


def test_the_candidates_in_the_ninth_column_are_no_part_of_the_text():
    assert read(ED, "valid") == [
        talk(
            "My son let go of my hand and rode off!",
            "How far did he get?",
            "To the bakery, and back.",
            id="hit:20_conv:40",
            situation="My son rode his bicycle without my hand.",
            emotion="proud",
            notes=workers(31, 32),
        )
    ]
    assert report(ED, "valid") == ({}, {"shifted rows repaired": 1})


def test_carriage_returns_at_line_ends_are_no_part_of_the_text():
    assert read(ED, "test") == [
        talk(
            '"Six in the morning',
            "Even on Sundays?",
            "Even then.",
            id="hit:50_conv:60",
            situation="The drill next door starts at six.",
            emotion="annoyed",
            notes=workers(41, 42),
        )
    ]
    assert report(ED, "test") == ({}, {})


def test_each_listener_turn_is_one_example_with_what_came_before():
    assert replies(ED, "train") == [
        (1, "listener", TOMATOES.turns[1].text),
        (3, "listener", TOMATOES.turns[3].text),
        (1, "listener", LIFT.turns[1].text),
        (1, "listener", CHESS.turns[1].text),
    ]


def test_an_example_keeps_situation_emotion_and_id():
    first = next(iter(reader(ED).examples("train")))
    assert (first.context.situation, first.context.emotion, first.context.id) == (
        TOMATOES.situation,
        "grateful",
        "hit:1_conv:2",
    )


def test_a_line_that_is_not_utf8_is_skipped_and_counted(tmp_path):
    rows = (b"c,1,sad,p,1,Caf\xe9.,,\n", "c,1,sad,p,1,Café.,,\n".encode())
    (tmp_path / "train.csv").write_bytes(HEADER.encode() + b"".join(rows))
    assert read(ED, "train", tmp_path) == [talk("Café.", id="c", situation="p", emotion="sad")]
    assert report(ED, "train", tmp_path) == ({"not UTF-8": 1}, {})


def test_a_file_without_its_header_loses_no_row(tmp_path):
    (tmp_path / "train.csv").write_text("c,1,sad,p,1,First.,,\n")
    assert read(ED, "train", tmp_path) == [talk("First.", id="c", situation="p", emotion="sad")]


def test_other_line_separators_do_not_cut_a_row(tmp_path):
    write(tmp_path, "c,1,sad,p,1,one\u2028two\x85three\x0bfour\rfive,,")
    assert read(ED, "train", tmp_path)[0].turns[0].text == "one\u2028two\x85three\x0bfour\rfive"


def test_a_shifted_text_is_whole_although_a_trailing_column_is_missing(tmp_path):
    write(tmp_path, "c,1,sad,p,1,First, then second.,5|5|5_5|5|5")
    assert read(ED, "train", tmp_path)[0].turns[0].text == "First, then second."


@pytest.mark.parametrize("number", ["²", "1" * 5000])
def test_a_turn_number_that_is_no_number_is_skipped_and_counted(tmp_path, number):
    write(tmp_path, f"c,{number},sad,p,1,Text.,,", "c,1,sad,p,1,Text.,,")
    assert read(ED, "train", tmp_path) == [talk("Text.", id="c", situation="p", emotion="sad")]
    assert report(ED, "train", tmp_path) == ({"no turn number": 1}, {})


@quick
@given(text=lines_of_text(), situation=lines_of_text())
def test_any_line_of_text_comes_back_unchanged(scratch, text, situation):
    assume(escaped(text).replace("_comma_", ",") == text)
    assume(escaped(situation).replace("_comma_", ",") == situation)
    for ending in (",5|5|5_2|2|2,", ",,", ",,,a|b", ""):
        write(scratch, f"c,1,sad,{escaped(situation)},1,{escaped(text)}{ending}")
        assert read(ED, "train", scratch) == [talk(text, id="c", situation=situation, emotion="sad")]


def test_splits_are_available_when_their_files_are_there(tmp_path):
    assert reader(ED).available() == ("train", "valid", "test")
    assert reader(ED, write(tmp_path)).available() == ("train",)
    assert read(ED, "train", tmp_path) == []


def test_a_missing_file_is_an_error_with_the_download_command(tmp_path):
    with pytest.raises(
        CorpusError, match=r"no .*valid\.csv.*`listenwell corpus download empathetic_dialogues`"
    ):
        read(ED, "valid", tmp_path)


def test_a_mistyped_split_is_an_error_with_the_right_one():
    with pytest.raises(UnknownNameError, match=r"'validd'.*Did you mean 'valid'"):
        read(ED, "validd")


def test_a_copy_with_roles_in_place_of_workers_notes_nobody(tmp_path):
    rows = ("c,1,sad,p,0,One.,,", "c,2,sad,p,1,Two.,,")
    write(tmp_path, *rows)
    assert read(ED, "train", tmp_path) == [talk("One.", "Two.", id="c", situation="p", emotion="sad")]
    # A number in a shifted text is nobody's.
    write(tmp_path, *rows, "c,3,sad,We were,7,of them,0,Three.,,")
    assert read(ED, "train", tmp_path)[0].notes == ()


def test_workers_0_and_1_are_people_where_others_are(tmp_path):
    write(
        tmp_path,
        "a,1,sad,p,0,One.,,",
        "a,2,sad,p,1,Two.,,",
        "b,1,sad,p,1,One.,,",
        "b,2,sad,p,305,Two.,,",
        "c,1,sad,p,305,Nobody answers.,,",
        "d,2,sad,p,1,The first is lost.,,",
        "d,3,sad,p,0,Three.,,",
    )
    assert [dialogue.notes for dialogue in read(ED, "train", tmp_path)] == [
        workers(0, 1),
        workers(1, 305),
        (("speaker_worker", "305"),),
        workers(0, 1),
    ]
    write(tmp_path, *(f"a,{number},sad,p,{number % 2},x.,," for number in range(1, 1000)), "b,1,sad,p,9,x.,,")
    assert read(ED, "train", tmp_path)[-1].notes == ()  # looked for in the first rows only


def labelled(dialogue: Dialogue, *intents, notes=()) -> Dialogue:
    turns = tuple(
        Turn(turn.speaker, turn.text, Factors(intent=intent) if intent else None)
        for turn, intent in zip(dialogue.turns, intents, strict=True)
    )
    return replace(dialogue, turns=turns, notes=(*dialogue.notes, *notes))


def test_labels_stand_on_their_turns_and_the_situations_in_the_notes():
    assert read(LABELLED, "train", ED) == [
        labelled(
            TOMATOES,
            "joyful",
            "acknowledging",
            "neutral",
            "questioning",
            notes=(("situation_label", "grateful"),),
        ),
        labelled(LIFT, "afraid", "questioning", None, notes=(("situation_label", "terrified"),)),
        labelled(CHESS, "lonely", None),
    ]


def test_faults_of_the_label_table_are_counted():
    assert report(LABELLED, "valid", ED) == (
        {"no turn number": 1, "unknown label": 1, "wrong number of columns": 1},
        {"shifted rows repaired": 1, "turns without a label": 1},
    )


def test_the_publishers_annotated_folder_gives_the_labels_too():
    carrots = talk(
        "My carrots came up, all of them!",
        "Keep the snails away.",
        id="hit:1_conv:2",
        situation="The seeds came up, at last.",
        emotion="hopeful",
        notes=workers(11, 12),
    )
    cinema = talk(
        "They closed my cinema.",
        "I am sorry to hear that.",
        id="hit:3_conv:4",
        situation='The old "Rose" cinema closed.',
        emotion="sad",
        notes=workers(7, 8),
    )
    assert read(LABELLED, "train", "empathetic_dialogues_annotated") == [
        labelled(carrots, "joyful", "suggesting", notes=(("situation_label", "hopeful"),)),
        labelled(cinema, "nostalgic", "sympathizing", notes=(("situation_label", "sad"),)),
    ]
    assert report(LABELLED, "train", "empathetic_dialogues_annotated") == ({}, {})


def test_labels_follow_the_turn_numbers_when_a_turn_is_skipped(tmp_path):
    write(tmp_path, "c,1,sad,p,1,One.,,", "c,2,sad,p,2, ,,", "c,3,sad,p,1,Three.,,", "c,4,sad,p,2,Four.,,")
    (tmp_path / "utterance_labels.csv").write_text(
        "conv_id,utterance_idx,label\nc,1,sad\nc,2,wishing\nc,3,lonely\nc,4,consoling\n"
    )
    (dialogue,) = read(LABELLED, "train", tmp_path)
    assert [(turn.text, turn.factors.intent) for turn in dialogue.turns] == [
        ("One.", "sad"),
        ("Three.", "lonely"),
        ("Four.", "consoling"),
    ]


def test_a_superscript_turn_number_in_the_labels_is_skipped_and_counted(tmp_path):
    write(tmp_path, "c,1,sad,p,1,One.,,")
    (tmp_path / "utterance_labels.csv").write_text("conv_id,utterance_idx,label\nc,²,sad\n")
    assert report(LABELLED, "train", tmp_path) == ({"no turn number": 1}, {"turns without a label": 1})


def test_without_labels_the_error_says_where_they_come_from(tmp_path):
    write(tmp_path, "c,1,sad,p,1,One.,,")
    assert reader(LABELLED, tmp_path).available() == ()
    with pytest.raises(CorpusError, match=r"utterance_labels\.csv.*anuradha1992/EmpatheticIntents"):
        read(LABELLED, "train", tmp_path)


def test_a_label_table_without_its_columns_is_not_the_corpus(tmp_path):
    write(tmp_path, "c,1,sad,p,1,One.,,")
    (tmp_path / "utterance_labels.csv").write_text("conversation,turn,label\nc,1,sad\n")
    with pytest.raises(CorpusError, match="no column 'conv_id'"):
        read(LABELLED, "train", tmp_path)


@pytest.mark.parametrize(("name", "split"), [(ED, "train"), (ED, "valid"), (LABELLED, "train")])
def test_dialogues_go_through_our_jsonl(tmp_path, name, split):
    items = read(name, split, ED)
    assert through_jsonl(items, tmp_path) == items

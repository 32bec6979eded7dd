import pytest
from hypothesis import given
from hypothesis import strategies as st

from listenwell.dialogue import Dialogue, Factors, LabelledText, Persona, Turn
from listenwell.errors import CorpusError
from listenwell.labels import EMOTIONS, GOEMOTIONS

from .helpers import DATA, quick, read, reader, replies, report, through_jsonl


def test_dialogues_and_texts_come_out_as_written():
    assert read("jsonl", "all") == [
        Dialogue(
            (
                Turn("speaker", "The roof leaks."),
                Turn(
                    "listener",
                    "Since when?",
                    Factors(
                        mechanisms=("exploration",),
                        act="questioning",
                        expressed_emotion="surprise",
                        levels=(0, 0, 2),
                    ),
                    (("draft", "1"),),
                ),
            ),
            "roof",
            situation="It rained.",
            emotion="annoyed",
            notes=(("source", "diary"),),
        ),
        Dialogue(
            (Turn("ida", "Zwölf Grüße 🌧"), Turn("jo", "a\u2028b\0c\ud800d")),
            personas=(Persona("jo", ("I paint.",)),),
            listener="jo",
        ),
        LabelledText("What a day.", ("joy", "relief"), "t1"),
    ]


def test_every_broken_line_is_counted_with_what_is_wrong():
    one = reader("jsonl")
    list(one.read("all"))
    assert one.report.first == {
        "not JSON": "all.jsonl:4",
        "Dialogue has no field 'sitation'. Did you mean 'situation' or 'emotion'?": "all.jsonl:6",
        "The dialogue '' has no turns. Give it at least one.": "all.jsonl:7",
        "There is no emotion named 'sadd'. Did you mean 'sad'?": "all.jsonl:8",
        "Dialogue must be an object with named fields, not list []. Its fields: turns, id, personas, "
        "listener, situation, emotion, notes.": "all.jsonl:9",
    }
    assert set(one.report.skipped.values()) == {1}
    assert not one.report.counts


def test_each_listener_turn_is_one_example():
    assert replies("jsonl", "all") == [(1, "listener", "Since when?"), (1, "jo", "a\u2028b\0c\ud800d")]


def test_a_single_file_is_the_split_all():
    file = DATA / "jsonl" / "train.jsonl"
    one = reader("jsonl", file)
    assert one.available() == ("all",)
    assert list(one.read("all")) == [Dialogue((Turn("speaker", "Hi."), Turn("listener", "Hello.")))]


def test_a_folder_has_the_splits_whose_files_are_there(tmp_path):
    assert reader("jsonl").available() == ("all", "train")
    assert reader("jsonl", tmp_path).available() == ()
    assert read("jsonl", "train") == read("jsonl", "all", DATA / "jsonl" / "train.jsonl")


def test_a_missing_file_is_an_error_that_says_what_to_write(tmp_path):
    with pytest.raises(CorpusError, match=r'no .*train\.jsonl.*one JSON object a line: \{"turns"'):
        read("jsonl", "train", tmp_path)


def test_json_nested_without_end_is_skipped_and_counted(tmp_path):
    file = tmp_path / "deep.jsonl"
    file.write_text('{"turns": ' + "[" * 100_000 + '\n{"text": "Hi.", "labels": []}\n')
    assert read("jsonl", "all", file) == [LabelledText("Hi.", ())]
    assert report("jsonl", "all", file) == ({"not JSON": 1}, {})


@pytest.mark.parametrize(
    "line",
    [
        '{"turns": [{"speaker": "a", "text": 5}]}',
        '{"turns": [{"speaker": "", "text": "x"}]}',
        '{"turns": "text"}',
        '{"turns": [{"speaker": "a", "text": "x", "factors": {"levels": [1, 2]}}]}',
        '{"turns": [{"speaker": "a", "text": "x", "factors": {"levels": [1, 2, 7]}}]}',
        '{"turns": [{"speaker": "a", "text": "x", "notes": {"a": 1}}]}',
        '{"text": "x", "labels": "joy"}',
        '{"text": "x", "labels": [null]}',
        '{"text": "\\u2003", "labels": []}',
        '{"labels": []}',
        "NaN",
        "1" * 5000,
    ],
)
def test_a_line_of_the_wrong_shape_is_skipped_and_counted(tmp_path, line):
    file = tmp_path / "one.jsonl"
    file.write_text(line + "\n")
    assert read("jsonl", "all", file) == []
    assert list(report("jsonl", "all", file)[0].values()) == [1]


def has_no_surrogate_pair(text):
    """Whether JSON can tell the text from another: two surrogates that form a pair are one letter there."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass") == text


letters = st.characters() | st.sampled_from('\0\r\n\u2028\u2029\x85\ud800\udfff\ufeff"\\🙂')
anything = st.text(letters, max_size=20).filter(has_no_surrogate_pair)
texts = anything.filter(lambda text: bool(text.strip()))
notes = st.dictionaries(anything, anything, max_size=2)
factors = st.none() | st.builds(
    Factors,
    emotion=st.none() | st.sampled_from(EMOTIONS.labels),
    levels=st.none() | st.tuples(*[st.integers(0, 2)] * 3),
)
turns = st.builds(Turn, texts, texts, factors, notes)
dialogues = st.builds(
    Dialogue,
    st.lists(turns, min_size=1, max_size=3),
    anything,
    st.lists(
        st.builds(Persona, texts, st.lists(texts, max_size=2)), max_size=2, unique_by=lambda one: one.speaker
    ),
    texts,
    st.none() | anything,
    st.none() | st.sampled_from(EMOTIONS.labels),
    notes,
)
labelled = st.builds(LabelledText, texts, st.lists(st.sampled_from(GOEMOTIONS.labels), max_size=2), anything)


@quick
@given(items=st.lists(dialogues | labelled, max_size=4))
def test_any_items_come_back_unchanged(scratch, items):
    assert through_jsonl(items, scratch) == items

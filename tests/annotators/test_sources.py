import pytest

from listenwell.annotators.heads import HEADS
from listenwell.annotators.sources import QUESTIONS, SOURCES, Labelled, is_no_question, questions_of
from listenwell.corpora import CORPORA
from listenwell.dialogue import Dialogue, Factors, LabelledText, Turn
from listenwell.errors import CorpusError
from listenwell.labels import MECHANISMS

pytestmark = pytest.mark.usefixtures("samples")
POST, REPLY = Turn("speaker", "I failed."), "That must sting, I am sorry. I am sorry."


def read(source, split="train"):
    return list(SOURCES[source].read(split))


def said(source, head, split="train"):
    """The last text of each view with the head's labels, a dash for none."""
    return [(item.view[-1][0], "|".join(item.labels.get(head, ("-",)))) for item in read(source, split)]


def test_situations_have_the_speakers_emotion():
    assert said("situations", "emotion") == [
        ("My neighbour watered my tomatoes, all summer.", "grateful"),
        ("The lift stopped, and then the lamp went out.", "afraid"),
    ]  # the third conversation has no situation
    assert read("situations")[0] == Labelled(
        (("My neighbour watered my tomatoes, all summer.", False),),
        {"emotion": ("grateful",)},
        "hit:1_conv:2",
    )


def test_contexts_end_before_each_reply_and_know_what_it_was():
    first, second, third, fourth = read("contexts")
    assert [own for _, own in second.view] == [False, True, False]
    assert second.view[-1][0] == 'She only said "no trouble and left a jar of soup.'
    assert [dict(item.labels) for item in (first, second, third)] == [
        {"emotion": ("grateful",), "response": ("acknowledging",)},
        {"emotion": ("grateful",), "response": ("questioning",)},
        {"emotion": ("afraid",), "response": ("questioning",)},
    ]
    assert dict(fourth.labels) == {"emotion": ("lonely",)}  # its reply's label is none of ours
    assert first.group == second.group == "hit:1_conv:2" != third.group


def test_utterances_have_the_publishers_label():
    assert said("intents", "intent") == [
        ("The floor creaked although I live alone.", "afraid"),
        ("The shop is on the left.", "neutral"),
        ("All the best, and good luck!", "wishing"),
        ("Which of them, a <SEP> b?", "questioning"),
    ]


def test_an_act_that_is_none_of_the_eight_is_others():
    acts = dict(said("acts", "act"))
    assert len(read("acts")) == 10
    assert acts["It is a bus."] == "others"  # neutral in the files
    assert acts["Since when?"] == "questioning"
    by_hand = [
        item for text in SOURCES["acts"].reader().read("manual") for item in SOURCES["acts"].views(text)
    ]
    found = [item.labels["act"][0] for item in by_hand]
    assert (len(found), found.count("others"), found.count("wishing")) == (16, 7, 2)


def test_comments_have_a_expressed_emotion_only_where_all_labels_share_one():
    assert said("comments", "goemotions") == [
        ("The kettle sings, so it is tea time.", "joy"),
        ("Thanks, you scared me half to death!", "fear|gratitude"),
        ('"Fine" she said, and it was not fine.', "disapproval"),
        ('"never" he said, "ever"', "annoyance"),
    ]
    assert [label for _, label in said("comments", "expressed_emotion")] == ["joy", "-", "anger", "anger"]
    # Curiosity and surprise are two labels of one expressed emotion.
    assert said("comments", "goemotions", "test")[1][1] == "curiosity|surprise"
    assert said("comments", "expressed_emotion", "test")[1][1] == "surprise"


def test_replies_have_levels_and_the_letters_that_show_them():
    first, second, third = read("replies")
    assert first.view == (
        ("I failed, again. Nobody saw it.", False),
        ("That must sting, I am sorry. What was the test about?", True),
    )
    assert dict(first.labels) == {
        "emotional_reaction": ("strong",),
        "interpretation": ("no",),
        "exploration": ("strong",),
    }
    assert second.labels["emotional_reaction"] == ("weak",)
    shown = [
        {head: [item.view[-1][0][first:end] for first, end in places] for head, places in item.words.items()}
        for item in (first, second, third)
    ]
    assert shown == [
        {
            "emotional_reaction": ["That must sting, I am sorry."],
            "interpretation": [],
            "exploration": ["What was the test about?"],
        },
        {
            "emotional_reaction": ["I am sorry."],
            "interpretation": [],
            "exploration": ["What was the test about?"],
        },
        {"emotional_reaction": [], "interpretation": ['The nights are "long".'], "exploration": []},
    ]
    assert first.group == second.group == "I failed, again. Nobody saw it."  # a post is never parted


@pytest.mark.parametrize(
    ("rationale", "places"),
    [
        ("That must sting|I am sorry.", ((0, 15), (17, 28))),  # the first place where it stands
        (" I am sorry.  |  ", ((17, 28),)),
        ("i am sorry.|That  must", ()),  # neither in these letters
        ("It hurts|sting", ((10, 15),)),
    ],
)
def test_a_rationale_counts_where_it_is_found_letter_by_letter(rationale, places):
    reply = Turn("listener", REPLY, Factors(levels=(1, 0, 0)), {"rationale.emotional_reaction": rationale})
    (found,) = SOURCES["replies"].views(Dialogue((POST, reply)))
    assert found.words == {"emotional_reaction": places, "interpretation": (), "exploration": ()}


def test_what_a_source_cannot_use_is_passed_over():
    generic_question = Dialogue((POST, Turn("listener", REPLY)), emotion="sad")
    text = LabelledText("So true.", ("agreeing",))
    for name, wrong in {
        "situations": generic_question,
        "replies": generic_question,
        "comments": generic_question,
        "acts": generic_question,
        "intents": generic_question,
    }.items():
        assert list(SOURCES[name].views(wrong)) == []
    for name in ("situations", "contexts", "replies"):
        assert list(SOURCES[name].views(text)) == []
    (context,) = SOURCES["contexts"].views(generic_question)
    assert dict(context.labels) == {"emotion": ("sad",)}  # nobody said what the reply is


def test_a_source_reads_any_folder_and_names_its_files(tmp_path, samples):
    assert (
        SOURCES["acts"].files("valid")[0]
        == samples / "empathetic_intents" / "lexical" / "validation" / "acknowledging.txt"
    )
    assert len(list(SOURCES["comments"].read("train", samples / "goemotions"))) == 4
    with pytest.raises(CorpusError, match="corpus download goemotions"):
        next(SOURCES["comments"].read("train", tmp_path))


@pytest.mark.parametrize(
    ("text", "label", "faulty"),
    [
        ("don't worry.", "questioning", True),
        ("How sad!", "questioning", True),
        ("How did you do that", "questioning", False),  # the words of a question without its mark
        ("Is he well", "questioning", False),
        ("how sad?", "questioning", False),
        ("How sad!", "sympathizing", False),
    ],
)
def test_what_is_no_question_is_not_learned_as_one(text, label, faulty):
    assert is_no_question(LabelledText(text, (label,))) == faulty


def test_faulty_texts_are_left_out_of_train_alone(tmp_path):
    folder = tmp_path / "intents"
    folder.mkdir()
    for split in ("train", "test"):
        (folder / f"{split}.txt").write_text("38 <SEP> How sad!\n38 <SEP> Since when?\n36 <SEP> How sad!\n")
    learned, measured = (list(SOURCES["intents"].read(split, folder)) for split in ("train", "test"))
    assert [item.labels["intent"][0] for item in learned] == ["questioning", "sympathizing"]
    assert len(measured) == 3
    assert [name for name, source in SOURCES.items() if source.faulty] == ["intents", "acts"]


def test_every_source_gives_labels_of_its_heads_in_every_split():
    for source in SOURCES.values():
        assert {"train", "valid", "test"} <= {
            split.removeprefix(source.prefix) for split in CORPORA.load(source.corpus).splits
        }
        for split in ("train", "valid", "test"):
            found = read(source.name, split)
            assert found
            for item in found:
                assert set(item.labels) <= set(source.heads)
                for head, labels in item.labels.items():
                    assert all(label in HEADS[head].labels for label in labels)
                    assert len(labels) == 1 or HEADS[head].several


def test_questions_are_one_head_on_one_source():
    assert len(QUESTIONS) == 12
    assert {question.head for question in QUESTIONS.values()} == set(HEADS)
    for name, question in QUESTIONS.items():
        assert name == question.name
        assert question.head in SOURCES[question.source].heads
    assert [question.name for question in questions_of(["act", "emotion"])] == [
        "situation emotion",
        "dialogue emotion",
        "dialogue act",
    ]
    assert [question.name for question in questions_of(MECHANISMS)] == [
        "emotional reaction",
        "interpretation",
        "exploration",
    ]
    assert questions_of([]) == ()

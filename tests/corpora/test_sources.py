import pytest

from listenwell.corpora import CORPORA
from listenwell.corpora.sources import Source
from listenwell.dialogue import Dialogue, Factors, Turn
from listenwell.errors import CorpusError, InputError, UnknownNameError

SPC = "synthetic_persona_chat"


def write_talks(folder, **splits):
    """Synthetic-Persona-Chat's files with so many talks of three turns each."""
    folder.mkdir(parents=True, exist_ok=True)
    for split, count in splits.items():
        rows = [
            f'I am {number}.,I nap.,"User 1: One {number}.\nUser 2: Two {number}.\nUser 1: Three {number}."'
            for number in range(count)
        ]
        head = "user 1 personas,user 2 personas,Best Generated Conversation"
        (folder / f"{split}.csv").write_text("\n".join((head, *rows)) + "\n")
    return folder


def ids(source, split):
    return [example.context.id for example in source.examples(split)]


def test_spc_without_its_train_file_is_divided_by_dialogue(tmp_path):
    source = Source(SPC, write_talks(tmp_path, valid=60, test=2))
    assert source.divides
    train, valid = ids(source, "train"), ids(source, "valid")
    everyone = [f"valid-{number}" for number in range(1, 61)]
    # By hand, with sha256sum: "valid-3" begins with 1b95aa0e, 462,793,230, which ends in 0; "valid-1" with
    # 7c422c08, 2,084,711,432, which does not.
    assert set(valid) == {f"valid-{number}" for number in (3, 7, 18, 20, 24, 28, 29, 32, 46, 59)}
    assert set(train) == set(everyone) - set(valid)
    assert not set(train) & set(valid)
    assert len(train) + len(valid) == 60 * 2  # two replies a talk, none twice, none lost
    assert set(ids(source, "test")) == {"test-1", "test-2"}
    assert source.files("train") == source.files("valid") == (tmp_path / "valid.csv",)
    assert source.files("test") == (tmp_path / "test.csv",)


def test_spc_with_its_train_file_is_taken_as_it_is(tmp_path):
    source = Source(SPC, write_talks(tmp_path, train=12, valid=12, test=2))
    assert not source.divides
    assert set(ids(source, "train")) == {f"train-{number}" for number in range(1, 13)}
    assert set(ids(source, "valid")) == {f"valid-{number}" for number in range(1, 13)}
    assert source.files("train") == (tmp_path / "train.csv",)


@pytest.mark.usefixtures("samples")
def test_other_corpora_are_never_divided():
    source = Source("empathetic_dialogues")
    reader = CORPORA.load("empathetic_dialogues")()
    assert not source.divides
    for split in ("train", "valid", "test"):
        assert list(source.examples(split)) == list(reader.examples(split))
        assert source.files(split) == reader.files(split)


@pytest.mark.usefixtures("samples")
def test_everyone_replies_in_training_only():
    plain, everyone = Source("empathetic_dialogues"), Source("empathetic_dialogues", everyone=True)
    first, all_of_them = list(plain.examples("train")), list(everyone.examples("train"))
    assert len(all_of_them) > len(first) and {one.context.listener for one in first} == {"listener"}
    assert all(one.context.listener == one.reply.speaker for one in all_of_them)
    assert {one.context.listener for one in all_of_them} == {"listener", "speaker"}
    # Every turn but the first of each talk, once.
    assert len(all_of_them) == sum(len(talk.turns) - 1 for talk in plain.loader.read("train"))
    for split in ("valid", "test"):
        assert list(everyone.examples(split)) == list(plain.examples(split))


@pytest.mark.parametrize("split", ["train", "valid", "test"])
def test_missing_files_say_how_to_get_them(split):
    with pytest.raises(CorpusError, match=r"is not here.*corpus download empathetic_dialogues"):
        Source("empathetic_dialogues").files(split)


def test_spc_without_any_file_names_what_can_be_had():
    source = Source(SPC)
    with pytest.raises(CorpusError, match=r"valid\.csv.*corpus download synthetic_persona_chat"):
        source.files("train")
    with pytest.raises(CorpusError, match=r"valid\.csv.*corpus download synthetic_persona_chat"):
        list(source.examples("train"))


@pytest.mark.usefixtures("samples")
def test_a_corpus_without_conversations_is_a_clear_error():
    with pytest.raises(InputError, match=r"goemotions train holds no replies"):
        list(Source("goemotions").examples("train"))
    with pytest.raises(UnknownNameError, match="goemotions"):
        Source("goemotion")
    with pytest.raises(UnknownNameError, match="valid"):
        Source("goemotions").files("vald")


@pytest.mark.usefixtures("samples")
def test_titles_are_the_papers_names():
    assert Source("empathetic_dialogues").title == "EmpatheticDialogues"
    assert Source("pec_happy").title == "PEC happy"
    assert Source("esconv").title == "esconv"


def test_one_file_of_own_talks_is_divided(tmp_path):
    file = tmp_path / "talks.jsonl"
    talks = [
        Dialogue(
            (Turn("speaker", f"hello {number}"), Turn("listener", "hi")),
            id="" if number % 2 else f"t{number}",
        )
        for number in range(200)
    ]
    file.write_text("\n".join(talk.to_json() for talk in talks) + "\n")
    source = Source("jsonl", file)
    train, valid = ([e.context.turns[0].text for e in source.examples(split)] for split in ("train", "valid"))
    assert len(train) + len(valid) == 200 and not set(train) & set(valid)
    assert 5 <= len(valid) <= 40
    assert source.files("train") == source.files("valid") == (file,)
    with pytest.raises(CorpusError):
        source.files("test")


def test_annotated_copies_stand_in_for_the_corpus(tmp_path):
    folder = tmp_path / "empathetic_dialogues"
    folder.mkdir()
    factors = Factors(act="wishing")
    talk = Dialogue((Turn("speaker", "hello"), Turn("listener", "hi", factors=factors)), id="one")
    (folder / "valid.jsonl").write_text(talk.to_json() + "\n")
    source = Source("empathetic_dialogues", annotated=tmp_path)
    assert [example.reply.factors for example in source.examples("valid")] == [factors]
    with pytest.raises(CorpusError, match="listenwell annotate empathetic_dialogues --split train --out"):
        source.files("train")

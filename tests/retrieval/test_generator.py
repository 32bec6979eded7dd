import sys
from types import ModuleType

import pytest

from listenwell.dialogue import Dialogue, Turn
from listenwell.errors import InputError, RecipeError
from listenwell.generators import GENERATORS
from listenwell.listener import Listener
from listenwell.recipe import parse_recipe
from listenwell.retrieval.generator import Retrieval, RetrievalConfig
from tests.rankers.pool_fake import FakeSelector

REPLIES = ("I am sorry about your dog.", "A dog is a friend.", "Oh.", "Great!")


@pytest.fixture
def load(tmp_path, monkeypatch):
    fake = ModuleType("listenwell.rankers.ranker")
    fake.Ranker = FakeSelector
    monkeypatch.setitem(sys.modules, "listenwell.rankers.ranker", fake)
    file = tmp_path / "pool.txt"
    file.write_text("\n".join(REPLIES))

    def made(weights=None, **settings):
        return Retrieval.load(RetrievalConfig(pool=str(file), **settings), weights)

    return made


def talk(*texts):
    return Dialogue(
        tuple(Turn("listener" if number % 2 else "speaker", text) for number, text in enumerate(texts))
    )


def test_the_best_replies_of_the_pool_are_proposed_with_their_scores(load):
    pieces = []
    speech = load(candidates=2).generate(talk("your dog died"), (), 0, pieces.append)
    assert [candidate.text for candidate in speech.candidates] == list(REPLIES[:2])
    scores = dict(speech.candidates[0].scores)
    assert scores["ranker"] == pytest.approx(1.026)  # "your" is shared, and 26 letters
    assert -1 <= scores["first stage"] <= 1
    assert pieces == [REPLIES[0]]
    assert speech.notices == ()


def test_what_was_said_in_the_talk_comes_last(load):
    generator = load(candidates=2)
    again = generator.generate(talk("your dog died", f" {REPLIES[0]}", "a dog"), (), 0)
    assert REPLIES[0] not in [candidate.text for candidate in again.candidates]
    everything = talk("a", REPLIES[0], "b", REPLIES[1], "c", REPLIES[2], "d", REPLIES[3], "your dog")
    assert len(generator.generate(everything, (), 0).candidates) == 2


def test_the_seed_moves_nothing(load):
    generator = load()
    assert generator.generate(talk("hi"), (), 1) == generator.generate(talk("hi"), (), 2)


def test_the_users_own_folder_is_the_ranker(load, tmp_path):
    assert load(tmp_path / "mine").search.selector.key == f"fake {tmp_path / 'mine'} None"
    assert load(ranker=tmp_path / "other").search.selector.key == f"fake {tmp_path / 'other'} None"


def test_a_listener_chats_from_it(load):
    generator = load(candidates=3)
    reply = Listener(generator).reply("my dog died", seed=1)
    assert reply.text == reply.candidates[0].text and reply.text in REPLIES
    assert len(reply.candidates) == 3
    assert reply.model == generator.name == "retrieval (fake, pool.txt)"  # wherever the file lies


def test_it_is_a_model_with_settings(tmp_path):
    assert GENERATORS.load("retrieval") is Retrieval
    config = parse_recipe(RetrievalConfig, "pool: esconv:all\nranker: mine\ntop: 3")
    assert (config.pool, str(config.ranker), config.candidates) == ("esconv:all", "mine", 3)
    with pytest.raises(InputError, match="candidates is 0"):
        RetrievalConfig(candidates=0)
    with pytest.raises(RecipeError, match="pool"):
        parse_recipe(RetrievalConfig, "pol: x")


def test_a_wrong_pool_is_told_before_the_ranker_is_loaded():
    with pytest.raises(InputError, match="no file and no corpus"):
        Retrieval.load(RetrievalConfig(pool="nowhere.txt"))

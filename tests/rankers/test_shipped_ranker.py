"""The ranker that comes with the package."""

import numpy as np
import pytest

from listenwell import Dialogue, Persona, Turn
from listenwell.checkpoint import open_checkpoint
from listenwell.dialogue import Candidate
from listenwell.rankers.ranker import SHIPPED, Ranker

LIMIT_BYTES = 8 * 10**6


@pytest.fixture(scope="module", params=["torch", "onnx"])
def selector(request, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:  # the user's own cache is left alone
        patch.setenv("LISTENWELL_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield Ranker.load(engine=request.param)


def talk(text, *persona):
    personas = (Persona("listener", persona),) if persona else ()
    return Dialogue((Turn("speaker", text),), personas=personas)


@pytest.mark.parametrize(
    ("said", "fitting", "strange"),
    [
        ("My dog died yesterday.", "I'm so sorry, losing a pet is hard.", "Congratulations, you earned it!"),
        ("I got the promotion!", "Congratulations, you earned it!", "I'm so sorry for your loss."),
        ("I have to give a speech tomorrow.", "Are you nervous about speaking?", "What breed is your cat?"),
    ],
)
def test_a_fitting_reply_comes_before_a_strange_one(selector, said, fitting, strange):
    scores = selector.scores(talk(said), [strange, fitting])
    assert scores[1] > scores[0]
    vectors = selector.reply_vectors([strange, fitting]) @ selector.context_vector(talk(said))
    assert vectors[1] > vectors[0]
    chosen = selector.rerank(talk(said), [Candidate(strange), Candidate(fitting)])
    assert [candidate.text for candidate in chosen] == [fitting, strange]


def test_a_persona_moves_the_choice(selector):
    replies = ["I play the violin in an orchestra.", "I drive a truck across the country."]
    said = "What do you do for a living?"
    plain = selector.scores(talk(said), replies)
    driver = selector.scores(talk(said, "I am a truck driver."), replies)
    violinist = selector.scores(talk(said, "I am a violinist."), replies)
    assert np.diff(violinist)[0] < np.diff(plain)[0] < np.diff(driver)[0]
    assert driver[1] > driver[0]
    assert violinist[0] > violinist[1]


def test_it_is_small_and_has_a_card_that_tells_what_a_user_must_know():
    saved = open_checkpoint(SHIPPED)
    assert sum((SHIPPED / name).stat().st_size for name in saved.sums) < LIMIT_BYTES
    card = saved.path("README.md").read_text(encoding="utf-8").casefold()
    for word in (
        "empatheticdialogues",
        "synthetic-persona-chat",
        "licence",
        "cc by-nc",
        "limitations",
        "r@1",
    ):
        assert word in card, word
    assert "{{" not in card
    assert "recipe.yaml" in saved.sums

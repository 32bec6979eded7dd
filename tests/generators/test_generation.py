"""Beams as words: where they end, what they are called in recipes, and what is refused."""

import math
from dataclasses import replace

import numpy as np
import pytest

from listenwell import Dialogue, Factors, Turn
from listenwell.errors import InputError
from listenwell.generators.base import Prefix, Prompt
from listenwell.generators.decoding import Decoding, Ending
from listenwell.generators.generation import generate_from_prompt, generate_rows
from listenwell.generators.planned import PlannedGenerator
from listenwell.generators.planned_config import PlannedConfig
from listenwell.generators.prompted import Prompted, PromptedConfig
from listenwell.recipe import parse_recipe
from listenwell.runtime.text import Vocabulary
from listenwell.runtime.torch_engine import TorchRuntime
from tests.generators.test_beams import END, Known
from tests.tiny import tiny_tokenizer

TALK = Dialogue((Turn("speaker", "My dog died. I am so sad."),))


@pytest.fixture(scope="module")
def runtime(tiny_llama):
    return TorchRuntime.from_folder(tiny_llama)


def test_replies_that_end_with_the_same_words_are_one_worked_by_hand():
    """After one sentence the reply is over, whatever comes next: "H." by a space or an end mark is one."""
    vocabulary = Vocabulary(tiny_tokenizer())
    h, n, dot, bang, space, a = (vocabulary.encode(letter)[0] for letter in "HN.! a")
    probabilities = {
        (): {h: 0.6, n: 0.4},
        (h,): {dot: 0.9, bang: 0.1},
        (n,): {dot: 1},
        (h, dot): {space: 0.6, END: 0.4},
        (n, dot): {space: 0.5, a: 0.5},
        (h, bang): {END: 1},
    }

    def of(said):
        found = np.zeros(len(vocabulary))
        for token, probability in probabilities.get(said, {END: 1}).items():
            found[token] = probability
        return found

    decoding = Decoding(beams=3, length_penalty=0, max_tokens=20, repetition_penalty=1, ending=Ending(1, 1))
    prompt, pieces = Prompt((), frozenset({END})), []
    generations = generate_from_prompt(Known(of, vocabulary), prompt, decoding, [0, 1, 2], pieces.append)
    assert [reply.text for reply in generations] == ["H.", "N.", "N.a"]  # 0.324, and 0.216 again; 0.2; 0.2
    assert [math.exp(reply.log_likelihood) for reply in generations] == pytest.approx([0.324, 0.2, 0.2])
    assert [reply.tokens for reply in generations] == [4, 4, 4]
    assert "".join(pieces) == "H." and len(pieces) > 1
    with pytest.raises(InputError, match=r"4 replies need more than 3 beams\. Give at least as many beams"):
        generate_from_prompt(Known(of, vocabulary), prompt, decoding, [0, 1, 2, 3])


@pytest.mark.parametrize("sentences", [1, 3])
def test_texts_end_where_growing_replies_end(runtime, sentences):
    """Of one beam the whole text is what greedy sampling says, cut at the same place."""
    greedy = Decoding(0, max_tokens=40, repetition_penalty=1, ending=Ending(sentences, 0.3))
    marks = frozenset({*runtime.encode("!"), 2})
    for text in ("I am", "What happened", "Oh no"):
        state = [runtime.prefill(runtime.encode(text)) for _ in range(2)]
        plain, beam = (
            generate_rows(runtime, Prefix(prefix, marks, 200), decoding, [0])
            for prefix, decoding in zip(state, (greedy, replace(greedy, beams=1)), strict=True)
        )
        assert beam[0].text == plain[0].text and beam[0].tokens == plain[0].tokens
        assert beam[0].log_likelihood == pytest.approx(plain[0].log_likelihood, abs=1e-4)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"beams": -1}, "beams is -1"),
        ({"beams": 65}, "beams is 65"),
        (
            {"beams": 6, "beam_groups": 4, "diversity": 1.0},
            "6 beams cannot be shared out evenly among 4 groups",
        ),
        (
            {"beams": 2, "beam_groups": 4, "diversity": 1.0},
            "2 beams cannot be shared out evenly among 4 groups",
        ),
        ({"beams": 4, "beam_groups": 2}, "2 groups without diversity would all say the same"),
        ({"beams": 4, "diversity": 0.5}, "there is one group of beams"),
        ({"beam_groups": 2, "diversity": 0.5}, "beam_groups is 2, but there are no beams"),
        ({"diversity": 0.5}, r"diversity is 0\.5, but there are no beams"),
        ({"length_penalty": 0.0}, "length_penalty is 0, but there are no beams"),
        ({"beams": 2, "length_penalty": float("nan")}, "length_penalty is nan"),
    ],
)
def test_settings_that_contradict_each_other_are_named(wrong, words):
    with pytest.raises(InputError, match=words):
        Decoding(**wrong)


def test_a_recipe_asks_for_beams_and_gets_the_best_replies_in_order(runtime):
    recipe = """
        prompt_tokens: 256
        shots: []
        candidates: 3
        decoding: {beams: 6, beam_groups: 3, diversity: 0.5, length_penalty: 0.8, max_tokens: 12}
    """
    generator = Prompted(parse_recipe(PromptedConfig, recipe), runtime)
    pieces = []
    first = generator.generate(TALK, (), 1, pieces.append)
    texts = [candidate.text for candidate in first.candidates]
    assert len(set(texts)) == 3 and all(text.strip() for text in texts)
    assert "".join(pieces) == texts[0]
    assert generator.generate(TALK, (), 2) == first  # nothing is drawn
    few = replace(generator.config, decoding=Decoding(beams=2, max_tokens=12))
    with pytest.raises(InputError, match="3 replies need more than 2 beams"):
        Prompted(few, runtime).generate(TALK, (), 1)


def test_the_planned_speaker_searches_under_each_plan(tiny_generator):
    plans = (Factors("sad", ("exploration",), "questioning", "caring"), Factors("sad", (), "wishing", "joy"))
    decoding = Decoding(beams=3, max_tokens=8, no_repeat=3)
    generator = PlannedGenerator.load(
        PlannedConfig(candidates=4, prompt_tokens=256, decoding=decoding), tiny_generator
    )
    spoken = generator.generate(TALK, plans, seed=4)
    assert [candidate.plan for candidate in spoken.candidates] == [plans[0]] * 2 + [plans[1]] * 2
    assert len({candidate.text for candidate in spoken.candidates}) == len(spoken.candidates) >= 1
    assert spoken == generator.generate(TALK, plans, seed=5)

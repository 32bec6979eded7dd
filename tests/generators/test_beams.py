"""Beam search against all replies there are, against transformers, and worked by hand."""

import math
from dataclasses import replace
from itertools import pairwise, product
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from listenwell.generators.base import Prefix
from listenwell.generators.beams import search, search_rows
from listenwell.generators.decoding import Decoding, Row
from listenwell.runtime.base import top_tokens_of
from listenwell.runtime.onnx.engine import OnnxRuntime
from listenwell.runtime.text import Vocabulary
from listenwell.runtime.torch_engine import TorchRuntime

A, B, END = 0, 1, 2
PLAIN = Decoding(beams=2, length_penalty=0, max_tokens=2, repetition_penalty=1)


class Known:
    """An engine that knows the chances of the next token after every reply; a state is its rows' tokens."""

    context_length = 100

    def __init__(self, probabilities, vocabulary=None):
        self._probabilities = probabilities
        self.vocabulary = vocabulary or SimpleNamespace(special_ids=frozenset({END}), blank_ids=frozenset())

    def prefill(self, tokens):
        return [()]

    def pick(self, state, rows):
        return [state[row] for row in rows]

    def step(self, state, tokens):
        return [(*said, *more) for said, more in zip(state, tokens, strict=True)]

    def logits(self, state):
        with np.errstate(divide="ignore"):
            return np.stack([np.log(np.asarray(self._probabilities(said), np.float32)) for said in state])

    def likeliest(self, state, count):
        return top_tokens_of(self.logits(state), count)


def found(runtime, decoding, **settings):
    """Tokens, end or not, and chance of each reply after the one beginning."""
    prefix = Prefix([()], frozenset({END}), 100)
    (beams,) = search(runtime, prefix, 1, replace(decoding, **settings))
    return [(beam.tokens, beam.marked, pytest.approx(math.exp(beam.log_likelihood))) for beam in beams]


def table(rows):
    """Chances of A, B and the end by what was said; where nothing is known, the reply ends."""
    return lambda said: rows.get("".join("ab"[token] for token in said), (0, 0, 1))


def test_two_beams_find_what_greed_misses_worked_by_hand():
    """0.6 · 0.4 by always taking the best; 0.4 · 0.9 by keeping the second best."""
    runtime = Known(table({"": (0.6, 0.4, 0), "a": (0.4, 0.3, 0.3), "b": (0.1, 0, 0.9)}))
    assert found(runtime, PLAIN, beams=1) == [((A, A), False, 0.24)]
    assert found(runtime, PLAIN) == [((B,), True, 0.36), ((A, A), False, 0.24)]
    assert found(runtime, PLAIN, beams=5) == [
        ((B,), True, 0.36),
        ((A, A), False, 0.24),
        ((A, B), False, 0.18),
        ((A,), True, 0.18),
        ((B, A), False, 0.04),
    ]


def test_a_length_penalty_lets_long_replies_win_worked_by_hand():
    """ln 0.2 / 2 = -0.80 and ln 0.15 / 3 = -0.63: the short one has the better sum, the long one the mean."""
    rows = {
        "": (0.6, 0.4, 0),
        "a": (0.5, 0.5, 0),
        "b": (0.5, 0, 0.5),
        "aa": (0, 0.5, 0.5),
        "ab": (0.9, 0.1, 0),
    }
    runtime = Known(table(rows))
    short, long = ((B,), True, 0.2), ((A, A), True, 0.15)
    by_sum = found(runtime, PLAIN, beams=8, max_tokens=4)
    by_mean = found(runtime, PLAIN, beams=8, max_tokens=4, length_penalty=1)
    assert by_sum.index(short) < by_sum.index(long)
    assert by_mean.index(long) < by_mean.index(short)


@pytest.mark.parametrize("power", [0.0, 0.6, 1.0, 2.0, -1.0])
def test_with_room_for_all_it_finds_all_in_order(power):
    """Every reply of three tokens at most: 39 of them, by chances that depend on all that was said."""

    def probabilities(said):
        drawn = np.random.default_rng([7, *said]).random(4)
        return drawn / drawn.sum()

    ends = frozenset({3})
    runtime = Known(probabilities, SimpleNamespace(special_ids=ends, blank_ids=frozenset()))
    expected = []
    for tokens in (tokens for count in (1, 2, 3) for tokens in product(range(3), repeat=count)):
        steps = [*tokens, *([3] if len(tokens) < 3 else [])]  # at the limit no mark is needed
        probability = math.prod(probabilities(tokens[:place])[token] for place, token in enumerate(steps))
        expected.append((math.log(probability) / len(steps) ** power, tokens))
    decoding = replace(PLAIN, beams=64, max_tokens=3, length_penalty=power)
    (beams,) = search(runtime, Prefix([()], ends, 100), 1, decoding)
    expected.sort(reverse=True)
    assert len(beams) == 39 and [beam.tokens for beam in beams] == [tokens for _, tokens in expected]
    assert [beam.value(decoding) for beam in beams] == pytest.approx(
        [value for value, _ in expected], rel=1e-5
    )


DIVERSE = {"": (0.6, 0.4, 0), "a": (0.5, 0.4, 0.1), "b": (0.9, 0.1, 0), "aa": (0, 0, 1), "ab": (0, 0, 1)}


@pytest.mark.parametrize(
    ("diversity", "second"),
    [
        (1.0, (B, A)),  # ln 0.6 - 1 < ln 0.4; then A is taken, but ln 0.9 - 1 > ln 0.1
        (0.3, (A, B)),  # ln 0.6 - 0.3 > ln 0.4; then ln 0.5 - 0.3 < ln 0.4
        (0.1, (A, A)),  # ln 0.5 - 0.1 > ln 0.4
    ],
)
def test_groups_say_different_things_worked_by_hand(diversity, second):
    settings = {"beam_groups": 2, "diversity": diversity, "max_tokens": 3}
    tokens = [tokens for tokens, _, _ in found(Known(table(DIVERSE)), PLAIN, **settings)]
    assert tokens == list(dict.fromkeys([(A, A), second]))


def test_what_groups_paid_guides_the_search_but_not_the_order():
    """The second group's BB paid 1 for its second B: less than AB to the search, more to the model."""
    rows = {"": (0.55, 0.45, 0), "a": (0.1, 0.5, 0.4), "b": (0.1, 0.9, 0)}
    decoding = replace(PLAIN, beam_groups=2, diversity=1.0, max_tokens=3)
    said = [Row(0), Row(1)]
    prefix = Prefix([(), ()], frozenset({END}), 100, starts=(0, 0))
    for row in search_rows(Known(table(rows)), prefix, said, decoding):
        assert row.tokens
    assert [row.tokens for row in said] == [[B, B], [A, B]]
    assert all(row.finished for row in said)
    assert said[0].log_likelihood == pytest.approx(math.log(0.45 * 0.9))


def test_what_was_paid_is_not_forgotten_worked_by_hand():
    """Four words. The first group takes a and b, then aa and ab. The second takes c, and a for 2.

    ac and ad are likelier than cc and cd (0.1 against 0.06), but their a was paid for.
    """
    probabilities = {
        (): (0.5, 0.3, 0.2, 0),
        (0,): (0.3, 0.3, 0.2, 0.2),
        (1,): (0.25, 0.25, 0.25, 0.25),
        (2,): (0.2, 0.2, 0.3, 0.3),
    }
    vocabulary = SimpleNamespace(special_ids=frozenset({4}), blank_ids=frozenset())
    runtime = Known(lambda said: (*probabilities[said], 0), vocabulary)
    decoding = replace(PLAIN, beams=4, beam_groups=2, diversity=2.0)
    (beams,) = search(runtime, Prefix([()], frozenset({4}), 100), 1, decoding)
    assert [beam.tokens for beam in beams] == [(0, 0), (2, 2), (0, 1), (2, 3)]  # the best of each come first
    assert [beam.toll for beam in beams] == [0, 0, 0, 0]


def by_the_paper(probabilities, decoding):
    """Algorithm 1, looking at everything: (tokens, value), by group."""
    size, end = decoding.beams // decoding.beam_groups, len(probabilities(())) - 1
    groups = [([((), 0.0, 0.0)], []) for _ in range(decoding.beam_groups)]
    for count in range(1, decoding.max_tokens + 1):
        taken, power = [], count**decoding.length_penalty
        for alive, whole in groups:
            offers = [
                (
                    (*said, token),
                    score + math.log(probability),
                    toll + decoding.diversity * taken.count(token),
                )
                for said, score, toll in alive
                for token, probability in enumerate(probabilities(said))
                if said or token != end
            ]
            offers.sort(key=lambda offer: offer[2] - offer[1])
            is_over = [offer[0][-1] == end or count == decoding.max_tokens for offer in offers]
            for (said, score, toll), over in list(zip(offers, is_over, strict=True))[:size]:
                whole.extend([((score - toll) / power, score / power, said)] * over)
            whole.sort(reverse=True)
            del whole[size:]
            alive[:] = [offer for offer, over in zip(offers, is_over, strict=True) if not over][:size]
            if len(whole) == size and alive and (alive[0][1] - alive[0][2]) / power <= whole[-1][0]:
                alive.clear()
            taken += [said[-1] for said, _, _ in alive]
    return [[(said, value) for _, value, said in whole] for _, whole in groups]


@pytest.mark.parametrize("beams, groups", [(1, 1), (3, 1), (2, 2), (6, 2), (6, 3)])
@pytest.mark.parametrize("power", [0.0, 1.0])
def test_groups_find_what_the_algorithm_finds_step_by_step(beams, groups, power):
    decoding = Decoding(
        beams=beams, beam_groups=groups, diversity=0.4 * (groups > 1), length_penalty=power, max_tokens=6
    )
    decoding = replace(decoding, repetition_penalty=1)
    lengths = set()
    for seed in range(40):

        def probabilities(said, seed=seed):
            drawn = np.random.default_rng([seed, *said]).random(6) ** 3 + 1e-3
            return drawn / drawn.sum()

        runtime = Known(probabilities, SimpleNamespace(special_ids=frozenset({5}), blank_ids=frozenset()))
        (found,) = search(runtime, Prefix([()], frozenset({5}), 100), 1, decoding)
        wanted = dict(reply for group in by_the_paper(probabilities, decoding) for reply in group)
        ours = {(*beam.tokens, *[5] * beam.marked): beam.value(decoding) for beam in found}
        assert ours == pytest.approx(wanted, rel=1e-4)
        lengths |= {len(tokens) for tokens in ours}
    assert len(lengths) > 3


def test_however_many_of_the_likeliest_are_forbidden_the_best_of_the_others_are_found():
    """Of 200 tokens, each likelier than the next, 50 are special, and 30 more cannot begin a reply."""
    weights = 0.9 ** np.arange(200)
    vocabulary = SimpleNamespace(special_ids=frozenset(range(50)), blank_ids=frozenset(range(50, 80)))
    runtime = Known(lambda said: weights / weights.sum(), vocabulary)
    prefix, decoding = Prefix([()], frozenset({40}), 100), replace(PLAIN, max_tokens=20, no_repeat=1)
    (beams,) = search(runtime, prefix, 1, decoding)
    assert [(beam.tokens, beam.marked) for beam in beams] == [((80,), True), ((81,), True)]
    (beams,) = search(runtime, replace(prefix, stop=frozenset()), 1, replace(decoding, beams=1))
    assert [beam.tokens for beam in beams] == [(80, *range(50, 69))]


def test_repeated_tokens_and_runs_cost_what_they_cost_in_sampling():
    runtime = Known(lambda said: (0.5, 0.3, 0.2))
    assert found(runtime, PLAIN, beams=1, max_tokens=4)[0][0] == (A, A, A, A)
    assert found(runtime, PLAIN, beams=1, max_tokens=4, no_repeat=2)[0][0] == (A, A, B, A)
    # ln 0.5 is below 0 and so times 2, once A was said: ln 0.25 < ln 0.3; then both were.
    assert found(runtime, PLAIN, beams=1, max_tokens=3, repetition_penalty=2)[0][0] == (A, B, A)
    unlike = (0.002, *[0.998 / 62] * 62)  # all others are likelier, but what was said is raised
    raised = Known(lambda said: unlike if said else (0.9, *[0.1 / 62] * 62))
    assert found(raised, PLAIN, beams=1, max_tokens=2)[0][0] != (A, A)
    assert found(raised, PLAIN, beams=1, max_tokens=2, repetition_penalty=0.1)[0][0] == (A, A)


def test_where_nothing_may_follow_the_reply_ends():
    runtime = Known(lambda said: (0.7, 0.3, 0))
    assert {tokens for tokens, _, _ in found(runtime, PLAIN, max_tokens=9, no_repeat=1)} == {(A, B), (B, A)}
    nothing = Known(lambda said: (0, 0, 1))
    assert found(nothing, PLAIN) == [((), False, 1.0)]
    assert search(runtime, Prefix([()], frozenset({END}), 0), 1, PLAIN)[0][0].tokens == ()


@pytest.fixture(scope="module")
def runtime(tiny_llama):
    return TorchRuntime.from_folder(tiny_llama)


@pytest.fixture(scope="module")
def engines(runtime, tiny_llama, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LISTENWELL_CACHE", str(tmp_path_factory.mktemp("graphs")))
        return runtime, OnnxRuntime.load(tiny_llama, precision="fp32", threads=1)


@pytest.fixture(scope="module")
def sure(tiny_llama):
    """The tiny model with strong opinions: replies end early and late, some are far better than others."""
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(tiny_llama).eval()
    with torch.no_grad():
        for weights in model.model.layers.parameters():
            weights.mul_(15 if weights.dim() > 1 else 1)
        model.model.norm.weight *= 4
    return TorchRuntime(model, Vocabulary.from_folder(tiny_llama)), model


def beams_of(runtime, prompt, stop, decoding):
    return search(runtime, Prefix(runtime.prefill(prompt), stop, 100), 1, decoding)[0]


@pytest.mark.parametrize(
    ("settings", "every"),
    [
        ({"beams": 4, "length_penalty": 1.0}, 9),
        ({"beams": 4, "length_penalty": 0.0}, 9),
        ({"beams": 3, "length_penalty": 2.0}, 20),
        ({"beams": 5, "no_repeat": 2}, 40),
        ({"beams": 1}, 9),
        ({"beams": 6}, 400),  # one end mark, which hardly ever comes: the limit ends all
    ],
)
def test_replies_and_scores_are_those_of_transformers(sure, settings, every):
    runtime, model = sure
    stop = frozenset(range(2, len(runtime.vocabulary), every))
    special, blank = runtime.vocabulary.special_ids, runtime.vocabulary.blank_ids
    decoding, lengths = Decoding(max_tokens=12, repetition_penalty=1, **settings), set()
    for count in range(1, 11):
        # Of marks alone, since transformers also looks for runs of the prompt: no reply can say these again.
        prompt = [1] * count
        wanted = model.generate(
            torch.tensor([prompt]),
            attention_mask=torch.ones(1, len(prompt)),
            do_sample=False,
            num_beams=decoding.beams,
            num_return_sequences=decoding.beams,
            length_penalty=decoding.length_penalty,
            max_new_tokens=12,
            no_repeat_ngram_size=decoding.no_repeat,
            eos_token_id=sorted(stop),
            pad_token_id=0,
            suppress_tokens=sorted(special - stop),
            begin_suppress_tokens=sorted(special | blank | stop),
            return_dict_in_generate=True,
            output_scores=True,
        )
        ours = beams_of(runtime, prompt, stop, decoding)
        theirs = [
            tuple(token for token in row if token != 0 and token not in stop)
            for row in wanted.sequences[:, len(prompt) :].tolist()
        ]
        assert [beam.tokens for beam in ours] == theirs
        lengths |= set(map(len, theirs))
        if decoding.beams > 1:
            scores = wanted.sequences_scores.tolist()
            assert [beam.value(decoding) for beam in ours] == pytest.approx(scores, abs=1e-3)
    assert len(lengths) > 1 or every == 400


@pytest.mark.parametrize("groups", [1, 2])
def test_both_engines_find_the_same(engines, groups):
    stop = frozenset(range(2, len(engines[0].vocabulary), 9))
    decoding = Decoding(beams=6, beam_groups=groups, diversity=0.5 * (groups - 1), max_tokens=10)
    torch_beams, onnx_beams = (beams_of(engine, [1, 40], stop, decoding) for engine in engines)
    assert [beam.tokens for beam in onnx_beams] == [beam.tokens for beam in torch_beams]
    for one, other in zip(onnx_beams, torch_beams, strict=True):
        assert one.log_likelihood == pytest.approx(other.log_likelihood, abs=1e-3)


def test_groups_of_a_real_engine_differ_more_than_beams_do(runtime):
    def shared(decoding):
        tokens = [beam.tokens for beam in beams_of(runtime, [1, 40], frozenset({2}), decoding)]
        assert len(set(tokens)) == 4
        return sum(a == b for one in tokens for other in tokens for a, b in zip(one, other, strict=True))

    plain = Decoding(beams=4, max_tokens=10)
    assert shared(replace(plain, beam_groups=4, diversity=1.0)) < shared(plain)


def rows_of(runtime, prompts, starts, decoding):
    state = runtime.prefill_many([prompts[start] for start in starts])
    rows = [Row(seed) for seed in range(len(starts))]
    prefix = Prefix(state, frozenset(range(2, 320, 9)), 100, starts=tuple(starts))
    list(search_rows(runtime, prefix, rows, decoding))
    return [(row.tokens, row.finished, pytest.approx(row.log_likelihood, abs=1e-3)) for row in rows]


def test_searches_side_by_side_find_what_each_finds_alone(engines):
    """Beginnings of different length, whose rows stand in any order; some end long before the others."""
    for engine in engines:
        prompts = [engine.encode(text) for text in ("I am", "What happened to your dog?", "Oh no")]
        decoding = Decoding(beams=4, max_tokens=14)
        batch_size = rows_of(engine, prompts, [2, 0, 2, 1, 0, 2], decoding)
        for start, count in ((0, 2), (1, 1), (2, 3)):
            alone = rows_of(engine, prompts, [start] * count, decoding)
            assert [
                row for row, at in zip(batch_size, [2, 0, 2, 1, 0, 2], strict=True) if at == start
            ] == alone
            assert len({tuple(tokens) for tokens, _, _ in alone}) == count


def test_the_likelihood_is_the_models_own_and_nothing_special_is_said(runtime):
    decoding = Decoding(beams=4, max_tokens=12, repetition_penalty=1.5, no_repeat=2)
    prompt, stop = runtime.encode("I am"), frozenset({40, 41, 42, 60, 61})
    for beam in beams_of(runtime, prompt, stop, decoding):
        assert not set(beam.tokens) & (runtime.vocabulary.special_ids | stop)
        assert beam.tokens[0] not in runtime.vocabulary.blank_ids
        assert len(set(pairwise(beam.tokens))) == len(beam.tokens) - 1
        if not beam.marked:
            likelihood = float(runtime.log_likelihoods(prompt, [beam.tokens])[0])
            assert beam.log_likelihood == pytest.approx(likelihood, abs=1e-3)
            assert beam.score < beam.log_likelihood or len(set(beam.tokens)) == len(beam.tokens)

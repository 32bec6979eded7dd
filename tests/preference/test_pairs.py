import json
from dataclasses import replace

import pytest

from listenwell.checkpoint import open_checkpoint
from listenwell.dialogue import Dialogue, Example, Factors, Turn
from listenwell.errors import InputError, ListenwellError
from listenwell.generators.base import Prefix
from listenwell.generators.generation import Generation, generate_rows
from listenwell.generators.planned import PlannedConfig
from listenwell.generators.plans import CROWD, PlanTokens, plan_of
from listenwell.generators.prompt_template import PromptTemplate
from listenwell.generators.vanilla import runtime_of
from listenwell.preference import pairs as making
from listenwell.preference.pairs import MismatchedReplies, OwnReplies, Settings, make_pairs, read_planned
from listenwell.training.preference_pairs import Pair, read_pairs
from tests.preference.helpers import call
from tests.training.test_planned import annotated

SETTINGS = Settings(count=9, seed=5, rows=4, temperature=1.5)


@pytest.fixture
def talks(tmp_path):
    file = tmp_path / "annotated" / "jsonl" / "train.jsonl"
    file.parent.mkdir(parents=True)
    file.write_text("\n".join(talk.to_json() for talk in annotated(12)) + "\n")
    return file


@pytest.fixture(scope="module")
def runtime(tiny_generator):
    return runtime_of(open_checkpoint(tiny_generator))


@pytest.fixture
def ended(monkeypatch):
    """The tiny generator never learned to end a reply: what it says counts as whole."""

    def whole(*given):
        return [replace(reply, tokens=1) for reply in generate_rows(*given)]

    monkeypatch.setattr(making, "generate_rows", whole)


def planned(text, talk, emotion="sad", act="wishing"):
    context = Dialogue((Turn("speaker", "Hello."),), talk, emotion=emotion)
    factors = Factors(mechanisms=(), act=act, expressed_emotion="joy")
    example = Example(context, Turn("listener", text, factors=factors))
    return example, plan_of(example)


def test_a_reply_meant_for_somebody_else_has_the_same_plan_and_where_possible_the_same_emotion():
    others = MismatchedReplies(
        [
            planned("Good luck.", "a"),
            planned("All the best.", "a"),  # the same talk
            planned("good  LUCK.", "b"),  # the same words
            planned("Why?", "c", act="questioning"),
            planned("Cheers.", "d", emotion="proud"),
            planned("Get well.", "e"),
            planned("Nice.", "f", act="agreeing"),
            planned("Well done.", "g", emotion="joyful"),
        ]
    )
    assert {others.find(0, seed) for seed in range(20)} == {"Get well."}
    assert {others.find(5, seed) for seed in range(20)} == {"Good luck.", "All the best.", "good  LUCK."}
    # Nobody else was proud: what was wished to others is near enough.
    assert {others.find(4, seed) for seed in range(60)} > {"Get well.", "Well done."}
    assert others.find(3, 1) is None and others.find(6, 1) is None
    assert [others.find(5, 7) for _ in range(3)] == [others.find(5, 7)] * 3


def test_own_replies_are_what_the_speaker_says_under_the_plan_alone_or_in_a_batch(runtime, talks, ended):
    known = read_planned(talks)[:5]
    own = OwnReplies(runtime, SETTINGS)
    batch = own.replies(known, range(5))
    assert batch == own.replies(known, range(5))
    assert batch == [own.replies([one], [place])[0] for place, one in enumerate(known)]
    assert all(batch) and len(set(batch)) == 5
    assert batch != OwnReplies(runtime, replace(SETTINGS, seed=6)).replies(known, range(5))
    example, plan = known[0]
    other = replace(plan, act="agreeing", expressed_emotion="anger")
    assert own.replies([(example, other)], [0])[0] != batch[0]
    # Greedily, token by token, without the batch.
    layout = PromptTemplate(runtime.vocabulary, PlanTokens.of(runtime.vocabulary), CROWD)
    prompt = layout.prompt(example.context, 256)
    state = runtime.step(runtime.prefill(prompt.tokens), [layout.plans.encode(plan)])
    greedy = replace(PlannedConfig().decoding, temperature=0)
    (reply,) = generate_rows(runtime, Prefix(state, prompt.stop, 100), greedy, [1])
    assert OwnReplies(runtime, replace(SETTINGS, temperature=0)).replies(known, range(5))[0] == reply.text


@pytest.mark.parametrize("over", [0, 1])
def test_a_reply_that_the_limit_cut_off_is_left_out(runtime, talks, monkeypatch, over):
    limit = PlannedConfig().decoding.max_tokens
    monkeypatch.setattr(making, "generate_rows", lambda *given: [Generation("Oh…", -1.0, limit + over)])
    assert OwnReplies(runtime, SETTINGS).replies(read_planned(talks)[:1], [0]) == [None if over else "Oh…"]


def test_pairs_hold_the_human_reply_its_plan_and_something_worse(tiny_generator, talks, tmp_path, ended):
    out = tmp_path / "pairs.jsonl"
    counts = make_pairs(tiny_generator, talks, out, SETTINGS)
    pairs = read_pairs(out)
    assert counts == {"own": 9, "other": 9} and len(pairs) == 18
    gold = {(example.context.id, example.reply.text): plan for example, plan in read_planned(talks)}
    for pair in pairs:
        assert pair.plan == gold[pair.context.id, pair.chosen]
        assert pair.context.turns[-1].speaker == "speaker"
        assert all(turn.factors is None and not turn.readings for turn in pair.context.turns)
        assert pair.rejected != pair.chosen
    people = {text for _, text in gold}
    assert all((pair.rejected in people) == (pair.source == "other") for pair in pairs)
    assert not (tmp_path / "pairs.jsonl.part").exists()
    lengths = [len(pair.context.turns) for pair in pairs]
    assert lengths == sorted(lengths)  # contexts of like length share a batch


def test_a_stopped_run_goes_on_and_ends_with_the_same_bytes(
    tiny_generator, talks, tmp_path, monkeypatch, ended
):
    whole, broken = tmp_path / "whole.jsonl", tmp_path / "broken.jsonl"
    make_pairs(tiny_generator, talks, whole, SETTINGS)
    replies, asked = OwnReplies.replies, []

    def stops(self, known, places):
        asked.append(list(places))
        if len(asked) == 2:
            raise KeyboardInterrupt
        return replies(self, known, places)

    monkeypatch.setattr(OwnReplies, "replies", stops)
    with pytest.raises(KeyboardInterrupt):
        make_pairs(tiny_generator, talks, broken, SETTINGS)
    assert not broken.exists()
    with pytest.raises(InputError, match="begun with other inputs or settings"):
        make_pairs(tiny_generator, talks, broken, replace(SETTINGS, seed=6))
    make_pairs(tiny_generator, talks, broken, SETTINGS)
    assert broken.read_bytes() == whole.read_bytes()
    assert list(map(len, asked)) == [4, 4, 4, 1] and asked[1] == asked[2]  # the first batch was kept
    with pytest.raises(InputError, match="finished"):
        make_pairs(tiny_generator, talks, broken, SETTINGS)
    make_pairs(tiny_generator, talks, tmp_path / "another.jsonl", replace(SETTINGS, seed=6))
    assert (tmp_path / "another.jsonl").read_bytes() != whole.read_bytes()


def test_a_rejected_reply_with_the_words_of_the_chosen_one_is_left_out(
    tiny_generator, talks, tmp_path, monkeypatch
):
    monkeypatch.setattr(
        OwnReplies, "replies", lambda self, known, places: [f" {one.reply.text.upper()} " for one, _ in known]
    )
    counts = make_pairs(tiny_generator, talks, tmp_path / "pairs.jsonl", SETTINGS)
    assert counts == {"other": 9}


def test_broken_lines_are_named(tmp_path, talks):
    example, plan = planned("Good luck.", "a")
    good = Pair(example.context, plan, "Good luck.", "Oh.", "own")
    file = tmp_path / "pairs.jsonl"
    file.write_text(f"{good.to_json()}\n\n")
    assert read_pairs(file) == [good]
    half = {**json.loads(good.to_json()), "plan": {"act": "wishing"}}
    for line, problem in (
        (good.to_json()[:50], "not JSON"),
        (json.dumps(half), "lacks a factor"),
        (json.dumps({**json.loads(good.to_json()), "rejected": " "}), "no text"),
        ("3", "object"),
    ):
        file.write_text(f"{good.to_json()}\n{line}\n")
        with pytest.raises(InputError, match=rf"pairs.jsonl:2 is no pair: .*{problem}"):
            read_pairs(file)
    with pytest.raises(InputError, match="Cannot read"):
        read_pairs(tmp_path / "none")


def test_the_command(tiny_generator, talks, tmp_path, ended):
    out = tmp_path / "pairs.jsonl"
    where = ["--annotated", tmp_path / "annotated", "--corpus", "jsonl", "--out", out]
    for options, problem in (
        (["--split", "valid"], "listenwell annotate jsonl --split valid"),
        (["--count", 1000], "holds 18 replies, not 1000"),
        (["--rows", 0], "rows is 0"),
    ):
        with pytest.raises(ListenwellError, match=problem):
            call("pairs", tiny_generator, *where, *options)
    assert "3 other, 3 own pairs" in call("pairs", tiny_generator, *where, "--count", 3, "--seed", 2)
    assert len(read_pairs(out)) == 6


@pytest.mark.parametrize(("negatives", "sources"), [("own", {"own"}), ("mismatched", {"other"})])
@pytest.mark.usefixtures("talks", "ended")
def test_one_kind_of_negatives(tiny_generator, tmp_path, negatives, sources):
    out = tmp_path / "pairs.jsonl"
    where = ["--annotated", tmp_path / "annotated", "--corpus", "jsonl", "--out", out]
    call("pairs", tiny_generator, *where, "--count", 3, "--negatives", negatives)
    assert {pair.source for pair in read_pairs(out)} == sources

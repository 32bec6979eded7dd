import json
from dataclasses import replace

import numpy as np
import pytest

from listenwell.dialogue import Dialogue, Factors, Turn
from listenwell.errors import InputError, RecipeError
from listenwell.preference import pairwise_accuracy as reading
from listenwell.training.preference_pairs import Pair
from listenwell.preference.pairwise_accuracy import errors_by_kind
from listenwell.rankers.ranker import Ranker
from listenwell.results.store import read_result
from listenwell.training.pairwise import PairwiseTask
from listenwell.training.recipe import LoraRecipe, PreferenceRecipe
from listenwell.training.run import train
from tests.training.rank_helpers import CPU, recipe_of

PLAN = Factors("sad", (), "wishing", "joy")
LORA = LoraRecipe(rank=4, alpha=8, dropout=0.0)


def pairs(count=40):
    """Who lost something is comforted, who won something is praised; never the other way round."""
    for number in range(count):
        lost = number % 2
        turns = (Turn("speaker", f"i {'lost' if lost else 'won'} my dog {number}"),)
        replies = ("so sorry for you", "good luck to you")
        fitting, wrong = replies if lost else replies[::-1]
        source = "mistaken" if number % 4 else "other"
        yield Pair(Dialogue(turns, f"talk-{number}", emotion="sad"), PLAN, fitting, wrong, source)


@pytest.fixture
def recipe(tmp_path, installed_encoder):
    file = tmp_path / "pairs.jsonl"
    file.write_text("\n".join(pair.to_json() for pair in pairs()) + "\n")
    found = recipe_of(
        tmp_path,
        {"model": "cross", "persona": 0},
        model="reader",
        lora=LORA,
        epochs=12,
        metric="pair_errors",
        preference=PreferenceRecipe(file, held_out=0.3),
    )
    return replace(found, data=replace(found.data, test=None))


def test_a_reader_learns_to_tell_which_reply_fits(recipe, tmp_path):
    before = PairwiseTask.prepare(recipe, CPU).measure("valid")["pair_errors"]
    result = read_result(train(recipe) / "result.json")
    found = dict(result.metrics)
    assert found["pair_errors"] == 0 < before and found["pair_errors mistaken"] == 0
    assert result.task == "reading" and 0 < result.count < 40
    conditions = dict(result.conditions)
    assert "mistaken, other" in conditions["learned"] and "no persona" in conditions["reads"]
    reader = Ranker.load(recipe.output)
    talk = next(iter(pairs())).context
    good, bad = reader.scores(talk, ["good luck to you", "so sorry for you"])
    assert good > bad
    # No talk is on both sides.
    task = PairwiseTask.prepare(recipe, CPU)
    assert len(task.pieces()) + result.count == 40


def test_a_reader_is_measured_on_pairs_beside_any_other_ranker(recipe, tmp_path, capsys):
    train(replace(recipe, epochs=1))
    arguments = [
        str(recipe.preference.file),
        "--ranker",
        str(recipe.output),
        "--keep",
        str(tmp_path / "kept"),
    ]
    assert reading.main([*arguments, "--system", "a reader", "--corpus", "mine", "--split", "valid"]) == 0
    (file,) = (tmp_path / "kept").rglob("*.json")
    found = json.loads(file.read_text())
    assert (found["task"], found["system"], found["count"]) == ("reading", "a reader", 40)
    assert (found["corpus"], found["split"]) == ("mine", "valid")
    assert found["conditions"]["pairs"] == "30 mistaken, 10 other"
    assert set(found["metrics"]) == {"pair_errors", "pair_errors mistaken", "pair_errors other"}
    assert reading.main(["none.jsonl", *arguments[1:]]) == 1
    assert "Cannot read none.jsonl" in capsys.readouterr().err


def test_errors_are_counted_in_all_and_by_kind_and_a_tie_is_one():
    some = list(pairs(8))  # the first and the fifth are of the kind other
    found = errors_by_kind(some, np.array([1.0, 1, 1, 0, -1, 1, 1, 1]))
    assert found == pytest.approx(
        {"pair_errors": 25, "pair_errors mistaken": 100 / 6, "pair_errors other": 50}
    )
    with pytest.raises(InputError, match="no pair to measure on"):
        errors_by_kind([], np.zeros(0))


def test_what_a_reader_needs_is_asked_for(recipe):
    with pytest.raises(RecipeError, match=r"reads context and reply together.*cross"):
        PairwiseTask.prepare(replace(recipe, ranker=replace(recipe.ranker, model="bi")), CPU)
    with pytest.raises(RecipeError, match=r"learns from pairs.*preference\.file"):
        PairwiseTask.prepare(replace(recipe, preference=None), CPU)
    with pytest.raises(RecipeError, match=r"0 to measure on.*held_out"):
        PairwiseTask.prepare(replace(recipe, preference=replace(recipe.preference, held_out=0.0)), CPU)

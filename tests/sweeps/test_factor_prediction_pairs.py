from types import SimpleNamespace

import numpy as np
import pytest

from listenwell.errors import InputError
from listenwell.results.store import Result, write_result
from listenwell.sweeps.comparisons import FACTORS_FILE, factor_prediction_pairs, read_ranks

BESIDE = [[1, 1, 1, 1, 0], [1, 1, 1, 4, 0], [1, 2, 1, 1, 0], [1, 1, 1, 3, 0]]
AFTER = [[1, 1, 1, 1, 0], [1, 1, 1, 1, 0], [1, 1, 1, 1, 0], [2, 1, 1, 1, 0]]


def run_of(folder, row, ranks, seed=1):
    folder.mkdir()
    result = Result(
        task="comae",
        system=folder.name,
        metrics=(("perplexity_by_token", 12.0),),
        corpus="c",
        split="test",
        count=len(ranks),
        data="d",
        units=(("perplexity_by_token", "perplexity"),),
        conditions=(("factors", "gold"), ("steps", "3")),
    )
    write_result(result, folder / "result.json")
    np.save(folder / FACTORS_FILE, np.array(ranks, np.int32))
    return SimpleNamespace(
        row=row,
        seed=seed,
        result=folder / "result.json",
        recipe=SimpleNamespace(output=folder),
        is_finished=lambda: True,
    )


def test_a_pair_worked_by_hand(tmp_path):
    runs = (
        run_of(tmp_path / "a", "CM ‖ DA side by side", BESIDE),
        run_of(tmp_path / "b", "CM → DA", AFTER),
        run_of(tmp_path / "c", "+CM", [[1, 1, 1, 0, 0]] * 4),
        run_of(tmp_path / "d", "CM → DA → EM", [[1, 1, 1, 1, 1]] * 4),
    )
    beside, after = factor_prediction_pairs(SimpleNamespace(runs=runs, config=SimpleNamespace(seeds=(1,))))
    # Both are right about the mechanisms of the first two replies alone.
    assert (beside.system, dict(beside.metrics)) == (
        "CM ‖ DA",
        {"cm_exact": 75.0, "da_share": 50.0, "da_hits_1_after": 50.0, "da_hits_3_after": 50.0},
    )
    assert (after.system, after.metric("da_hits_1_after"), after.metric("cm_exact")) == ("CM → DA", 100, 75)
    said = dict(after.conditions)
    assert said["DA against CM ‖ DA"] == "1 won, 0 lost, sign test p 1" and "factors" not in said
    assert after.task == "planning"


def test_a_lonely_model_has_no_row(tmp_path):
    runs = (run_of(tmp_path / "b", "CM → DA", AFTER), run_of(tmp_path / "a", "CM ‖ DA", BESIDE, seed=2))
    assert factor_prediction_pairs(SimpleNamespace(runs=runs, config=SimpleNamespace(seeds=(1,)))) == []


def test_a_damaged_file_is_a_clear_error(tmp_path):
    (tmp_path / FACTORS_FILE).write_bytes(b"no")
    with pytest.raises(InputError, match="holds no ranks"):
        read_ranks(tmp_path / FACTORS_FILE)

"""The scripts that ship and calibrate checkpoints."""

import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

from listenwell import checkpoint
from listenwell.annotators.model import KIND, load_classifier, save_classifier, with_temperatures
from listenwell.checkpoint import open_checkpoint
from listenwell.errors import CheckpointError, InputError
from listenwell.recipe import write_recipe
from listenwell.results.store import Result, write_result
from listenwell.training.recipe import DataRecipe, LoraRecipe
from tests.tiny import sure_ear
from tests.training.classifier_helpers import recipe_of

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "scripts"))

import calibrate  # noqa: E402
import ship  # noqa: E402

SHIPPED = sorted(folder.name for folder in (ROOT / "listenwell" / "pretrained").iterdir() if folder.is_dir())
CARD = "# Toy\n\nbefore\n\n{{figures}}\n\nafter\n"


def result(system, accuracy, spread):
    return Result(
        *("understanding", system, (("accuracy", accuracy),), "toy", "test", 1234, "d"),
        spreads=(("accuracy", spread),),
        checkpoint="c",
    )


def run_of(tmp_path, **texts):
    """A checkpoint with the given texts, by file names without their endings."""
    files = {"config": '{"words": ["/", "and/or", "~"]}', "recipe": "output: runs/toy\n"} | texts
    with checkpoint.writing(tmp_path / "run", "toy") as folder:
        for name, text in files.items():
            (folder / f"{name}{'.yaml' if name == 'recipe' else '.json'}").write_text(text)
        (folder / "model.safetensors").write_bytes(b"/home/not a text")
        (folder / "README.md").write_text("the run's own")
    return tmp_path / "run"


@pytest.fixture
def root(tmp_path):
    """A project with a card and two results, one of another system."""
    place = tmp_path / "project"
    (place / "docs" / "cards").mkdir(parents=True)
    (place / "docs" / "cards" / "toy.md").write_text(CARD)
    (place / "results").mkdir()
    write_result(result("mood: toy", 12.345, 0.678), place / "results" / "one.json")
    write_result(result("mood: not-toy", 98.765, 0.1), place / "results" / "two.json")
    return place


def test_what_is_shipped_is_whole_and_its_card_has_the_figures(tmp_path, root):
    run = run_of(tmp_path)
    target = ship.ship("toy", run, root)
    assert target == root / "listenwell" / "pretrained" / "toy"
    saved = open_checkpoint(target, "toy")
    assert set(saved.sums) == {"config.json", "recipe.yaml", "model.safetensors", "README.md"}
    for file in ("config.json", "recipe.yaml", "model.safetensors"):
        assert saved.path(file).read_bytes() == (run / file).read_bytes()
    assert saved.path("README.md").read_text().split("\n") == [
        *("# Toy", "", "before", ""),
        *("**Accuracy and F1**", ""),
        "| system | source | n | accuracy (%) |",
        "| --- | --- | ---: | ---: |",
        "| mood: toy | ours | 1,234 | 12.35 ± 0.68 |",
        *("", "", "after", ""),
    ]


def test_shipping_again_changes_no_byte_and_takes_new_figures(tmp_path, root):
    run = run_of(tmp_path)
    manifest = ship.ship("toy", run, root) / "checkpoint.json"
    first = manifest.read_bytes()
    ship.ship("toy", run, root)
    assert manifest.read_bytes() == first
    write_result(result("mood: toy", 50.0, 1.0), root / "results" / "one.json")
    card = (ship.ship("toy", run, root) / "README.md").read_text()
    assert "50.00 ± 1.00" in card and "12.35" not in card


@pytest.mark.parametrize(
    ("name", "text", "path"),
    [
        ("recipe", "output: /somewhere/toy\n", "/somewhere/toy"),
        ("recipe", "output: toy # not /tmp\n", "/tmp"),
        ("recipe", "teachers:\n- '~/ears'\n", "~/ears"),
        ("recipe", "teachers: [/a/b, c]\n", "/a/b"),
        ("config", '{"base":"/models/minilm"}', "/models/minilm"),
        ("adapter_config", '{"base_model_name_or_path": "C:\\\\models"}', "C:\\\\models"),
        ("metrics", '{"command": "train --out=/x/y"}', "/x/y"),
        ("metrics", '{"where": "file:///x/y"}', "file:///x/y"),
    ],
)
def test_a_checkpoint_that_names_a_place_on_a_machine_is_refused(tmp_path, root, name, text, path):
    run = run_of(tmp_path, **{name: text})
    with pytest.raises(CheckpointError) as caught:
        ship.ship("toy", run, root)
    assert f"holds the absolute path {path}." in caught.value.problem
    assert f"{name}." in caught.value.problem
    assert not (root / "listenwell").exists()


@pytest.mark.parametrize(
    "text",
    [
        "output: runs/toy\n",
        "output: ./runs/toy\n",
        "base: a/b\n",
        "see: https://example.org/a/b\n",
        "ratio: 1/2 or ~1 / 2\n",
    ],
)
def test_other_texts_are_no_absolute_paths(tmp_path, root, text):
    assert ship.ship("toy", run_of(tmp_path, recipe=text), root).is_dir()


def test_without_results_of_its_own_nothing_is_shipped(tmp_path, root):
    run = run_of(tmp_path)
    (root / "results" / "one.json").unlink()
    with pytest.raises(InputError, match=r"No result in .* belongs to toy\. Measure it first"):
        ship.ship("toy", run, root)
    assert not (root / "listenwell").exists()


def test_a_card_without_tables_is_shipped_as_it_is_and_none_is_an_error(tmp_path, root):
    run, card = run_of(tmp_path), root / "docs" / "cards" / "toy.md"
    card.write_text("# Toy\n")
    assert (ship.ship("toy", run, root) / "README.md").read_text() == "# Toy\n"
    card.unlink()
    with pytest.raises(InputError, match=r"no card .*toy\.md"):
        ship.ship("toy", run, root)


def test_a_damaged_run_is_not_shipped(tmp_path, root):
    run = run_of(tmp_path)
    (run / "model.safetensors").write_bytes(b"x")
    with pytest.raises(CheckpointError, match="damaged"):
        ship.ship("toy", run, root)


def test_there_are_shipped_checkpoints():
    assert " ".join(SHIPPED) == "annotators crisis fasttext_emotion generator ranker reward_model"


@pytest.mark.parametrize("name", SHIPPED)
def test_the_shipped_names_no_place_on_a_machine(name):
    ship.check_paths(open_checkpoint(ROOT / "listenwell" / "pretrained" / name))


@pytest.mark.parametrize("name", SHIPPED)
def test_the_figures_of_the_shipped_card_are_those_of_the_results(name):
    card = (ROOT / "listenwell" / "pretrained" / name / "README.md").read_text(encoding="utf-8")
    grids = ship.tables(name, ROOT / "results")
    assert grids or ship.TABLES not in (ROOT / "docs" / "cards" / f"{name}.md").read_text(encoding="utf-8")
    for grid in grids:
        assert grid.markdown() in card, f"{grid.title}: ship {name} again"
    rows = {line for grid in grids for line in grid.markdown().splitlines()}
    assert {line for line in card.splitlines() if "±" in line and "|" in line} <= rows


@pytest.mark.parametrize("name", SHIPPED)
def test_the_shipped_card_is_the_one_that_shipping_writes(name):
    card = (ROOT / "listenwell" / "pretrained" / name / "README.md").read_text(encoding="utf-8")
    assert card == ship.card_of(name), f"docs/cards/{name}.md or results/ changed: ship {name} again"


STEEPNESS = 3.0
SURE = STEEPNESS * np.log(2)
"""Two of the ten sample texts are "others", one label of nine. A head that gives it this score, and the other
eight 0, is right about its share, 2/10, where e^(score / temperature) = 8 · (2/10) / (8/10) = 2."""


@pytest.fixture
def classifier(tmp_path, samples, installed_encoder):
    """A trained ear with an adapter and a wrong temperature; its teachers are gone."""
    one = sure_ear(installed_encoder, {"act": {"others": SURE}}, lora=True)
    with_temperatures(one, {"act": 0.5})
    # The sample's validation split has each act once: nothing to be sure of.
    changes = {"lora": LoraRecipe(4, 8, 0.0), "data": DataRecipe(valid="train")}
    recipe = recipe_of(tmp_path / "classifier", changes=changes, teachers=(tmp_path / "gone",))
    with checkpoint.writing(tmp_path / "classifier", KIND) as folder:
        save_classifier(one, folder)
        write_recipe(recipe, folder / "recipe.yaml")
        (folder / "metrics.json").write_text('{"valid": {"error": 1.0}}')
        (folder / "README.md").write_text("a card of the old temperatures")
    return tmp_path / "classifier"


def test_calibrating_fits_the_temperature_and_leaves_the_weights(classifier, tmp_path):
    figures = calibrate.calibrate(classifier, tmp_path / "out")
    before, after = open_checkpoint(classifier, KIND), open_checkpoint(tmp_path / "out", KIND)
    kept = {"adapter_model.safetensors", "adapter_config.json", "heads.safetensors", "recipe.yaml"}
    assert set(after.sums) == kept | {"config.json", "metrics.json"}
    assert all(after.sums[file] == before.sums[file] for file in kept)
    old, new = before.config(), after.config()
    assert old["temperatures"] == {"act": 0.5}
    assert new["temperatures"]["act"] == pytest.approx(STEEPNESS, rel=2e-3)  # weights have 16 bits
    assert old | {"temperatures": None} == new | {"temperatures": None}
    assert json.loads(after.path("metrics.json").read_text()) == {"valid": figures}
    assert figures["dialogue act, accuracy"] == pytest.approx(20)
    entropy = 0.2 * np.log(5) + 0.8 * np.log(10)
    assert figures["mean_nll"] == pytest.approx(entropy, rel=1e-4)
    assert load_classifier(tmp_path / "out")[0].config.temperature("act") == new["temperatures"]["act"]


def test_calibrating_again_gives_the_same_bytes(classifier, tmp_path):
    for given, out in ((classifier, "one"), (classifier, "two"), (tmp_path / "one", "three")):
        calibrate.calibrate(given, tmp_path / out)
    one, *others = ((tmp_path / out / "checkpoint.json").read_bytes() for out in ("one", "two", "three"))
    assert others == [one, one]


def test_an_ear_can_be_calibrated_where_it_lies(classifier, tmp_path):
    shutil.copytree(classifier, tmp_path / "copy")
    calibrate.calibrate(classifier, classifier)
    calibrate.calibrate(tmp_path / "copy", tmp_path / "out")
    assert open_checkpoint(classifier).sums == open_checkpoint(tmp_path / "out").sums


def test_another_kind_of_checkpoint_is_refused(tmp_path):
    with pytest.raises(CheckpointError, match="not 'classifier'"):
        calibrate.calibrate(run_of(tmp_path), tmp_path / "out")


def test_shipping_the_shipped_folder_writes_the_card_anew_and_keeps_the_weights(tmp_path, root):
    target = ship.ship("toy", run_of(tmp_path), root)
    weights = (target / "model.safetensors").read_bytes()
    (root / "docs" / "cards" / "toy.md").write_text(CARD.replace("before", "changed"))
    ship.ship("toy", target, root)
    saved = open_checkpoint(target, "toy")
    assert "changed" in saved.path("README.md").read_text()
    assert saved.path("model.safetensors").read_bytes() == weights


def test_a_card_marks_rows_with_a_known_problem(tmp_path, root):
    (root / "results" / "KNOWN_PROBLEMS.yaml").write_text(
        "no_commit:\n  note: nobody knows\n  files: [one.json]\n"
    )
    card = (ship.ship("toy", run_of(tmp_path), root) / "README.md").read_text()
    assert "| mood: toy ³ |" in card and "³ nobody knows" in card

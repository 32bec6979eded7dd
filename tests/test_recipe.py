from dataclasses import dataclass, field
from pathlib import Path

import pytest

from listenwell.errors import RecipeError, UnknownNameError
from listenwell.generators.prompted import Prompted, PromptedConfig
from listenwell.recipe import parse_recipe, read_recipe, write_recipe

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Inner:
    rate: float = 0.1
    steps: int = 3


@dataclass(frozen=True)
class Recipe:
    name: str
    inner: Inner = field(default_factory=Inner)
    layers: tuple[int, ...] = ()
    folder: Path | None = None
    quick: bool = False


def test_yaml_becomes_the_dataclass():
    text = "name: a\ninner: {rate: 1e-4, steps: 7}\nlayers: [1, 2]\nfolder: x/y\nquick: true\n"
    assert parse_recipe(Recipe, text) == Recipe("a", Inner(1e-4, 7), (1, 2), Path("x/y"), True)


def test_whole_numbers_stay_whole_and_may_stand_for_fractions():
    recipe = parse_recipe(Recipe, "name: a\ninner: {rate: 1, steps: 2}")
    assert (type(recipe.inner.rate), type(recipe.inner.steps)) == (float, int)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name: a\ninner: {rte: 1}", "inner has no field 'rte'.*Did you mean 'rate'"),
        ("nme: a", "no field 'nme'.*'name'"),
        ("inner: {}", "lacks the field 'name'"),
        ("name: 3", "name must be text"),
        ("name: a\nquick: 1", "quick must be true or false"),
        ("name: a\ninner: {steps: 1.5}", "steps must be a whole number"),
        ("name: a\ninner: {steps: true}", "steps must be a whole number"),
        ("[1]", "named fields"),
        ("a: [", "not YAML"),
        ("name: !!python/object/apply:os.system ['true']", "not YAML"),
    ],
)
def test_what_does_not_fit_is_named(text, message):
    with pytest.raises(RecipeError, match=message):
        parse_recipe(Recipe, text)


def test_a_recipe_is_written_and_read_back(tmp_path):
    recipe = Recipe("ä", Inner(rate=0.5), (1,), Path("x"))
    write_recipe(recipe, tmp_path / "recipe.yaml")
    assert read_recipe(Recipe, tmp_path / "recipe.yaml") == recipe


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(RecipeError, match=r"none\.yaml"):
        read_recipe(Recipe, tmp_path / "none.yaml")


def test_the_recipe_in_the_repository_states_the_defaults():
    recipe = read_recipe(PromptedConfig, Path(__file__).parents[1] / "recipes" / "prompted.yaml")
    assert recipe == Prompted.Config()


def test_named_places_are_written_and_read_back(tmp_path):
    from listenwell.training.recipe import TrainRecipe
    from listenwell.training.task_configs import ClassifierRecipe, ClassifierTaskConfig

    recipe = TrainRecipe(
        Path("runs/x"),
        "classifier",
        task=ClassifierTaskConfig(ClassifierRecipe(("act",), paths=(("acts", Path("my/acts")),))),
    )
    write_recipe(recipe, tmp_path / "recipe.yaml")
    assert read_recipe(TrainRecipe, tmp_path / "recipe.yaml") == recipe


def test_sections_and_models_of_earlier_releases_are_read():
    from listenwell.training.recipe import TrainRecipe

    for model, old, new in (
        ("ear", "ear: {heads: [act]}", "classifier: {heads: [act]}"),
        ("bag", "bag: {dimensions: 4}", "fasttext: {dimensions: 4}"),
        ("planned", "speaker: {unplanned: 0.5}", "planning: {plan_dropout: 0.5}"),
        ("planned", "alone: 0.5", "unconditional: 0.5"),
    ):
        before, after = (
            parse_recipe(TrainRecipe, f"output: x\nmodel: {model}\n{part}") for part in (old, new)
        )
        assert before == after


@pytest.mark.parametrize(
    "file",
    [
        *(file for file in (ROOT / "recipes").rglob("*.yaml") if file.parent.name != "sweeps"),
        *(ROOT / "listenwell" / "pretrained").glob("*/recipe.yaml"),
    ],
    ids=lambda file: f"{file.parent.name}/{file.stem}",
)
def test_every_recipe_is_read_and_written_back(file, tmp_path):
    from listenwell.training.recipe import TrainRecipe

    if file.stem == "prompted" or file.parent.name == "reader":  # no training; retired
        return
    recipe = read_recipe(TrainRecipe, file)
    write_recipe(recipe, tmp_path / "recipe.yaml")
    assert read_recipe(TrainRecipe, tmp_path / "recipe.yaml") == recipe


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("model: ranker\nrankr: {}", "no field 'rankr'.*Did you mean 'ranker'"),
        ("model: vanilla\npairs: {sources: {a: 0}}", "no field 'pairs'"),
        ("model: classifier", "lacks the field 'classifier'"),
        ("model: planned\nplanning: {unplaned: 1}", "planning has no field 'unplaned'"),
        ("model: 3", "model must be text"),
    ],
)
def test_a_task_takes_its_own_sections_only(text, message):
    from listenwell.training.recipe import TrainRecipe

    with pytest.raises(RecipeError, match=message):
        parse_recipe(TrainRecipe, f"output: x\n{text}")


def test_a_model_and_its_settings_must_agree():
    from listenwell.training.recipe import TrainRecipe
    from listenwell.training.task_configs import CausalTaskConfig

    with pytest.raises(RecipeError, match="'planned' takes a PlannedTaskConfig, not a CausalTaskConfig"):
        TrainRecipe(Path("x"), "planned", task=CausalTaskConfig())
    with pytest.raises(UnknownNameError, match="Did you mean 'planned'"):
        parse_recipe(TrainRecipe, "output: x\nmodel: plannd")

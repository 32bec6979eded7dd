from dataclasses import dataclass, field
from pathlib import Path

import pytest

from listenwell.errors import RecipeError
from listenwell.generators.prompted import Prompted, PromptedConfig
from listenwell.recipe import parse_recipe, read_recipe, write_recipe


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
    from listenwell.training.recipe import ClassifierRecipe, TrainRecipe

    recipe = TrainRecipe(
        Path("runs/x"),
        "classifier",
        classifier=ClassifierRecipe(("act",), paths=(("acts", Path("my/acts")),)),
    )
    write_recipe(recipe, tmp_path / "recipe.yaml")
    assert read_recipe(TrainRecipe, tmp_path / "recipe.yaml") == recipe

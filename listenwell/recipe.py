"""Recipes: the settings of a run as a dataclass, read from a commented YAML file.

An unknown key is an error that names the near ones, so a mistyped setting never passes in silence.
"""

import re
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any, TypeVar

from listenwell.errors import RecipeError
from listenwell.files import written_whole
from listenwell.serialization import build, plain

T = TypeVar("T")

_FLOAT = re.compile(r"^[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?$")


def read_recipe(cls: type[T], path: Path) -> T:
    """Read a YAML file into a recipe dataclass."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise RecipeError(f"Cannot read the recipe {path}: {error}.", "Name a YAML file.") from None
    return parse_recipe(cls, text, str(path))


def parse_recipe(cls: type[T], text: str, where: str = "the recipe") -> T:
    """Make a recipe dataclass from YAML text; `where` names the source in messages."""
    import yaml

    class Loader(yaml.SafeLoader):
        """YAML 1.1 reads 1e-4 as text; a learning rate is a number."""

    Loader.add_implicit_resolver("tag:yaml.org,2002:float", _FLOAT, list("-+.0123456789"))
    # The general pattern would also take whole numbers: they are tried first.
    Loader.yaml_implicit_resolvers = {
        first: sorted(resolvers, key=lambda entry: entry[0].endswith(":float"))
        for first, resolvers in Loader.yaml_implicit_resolvers.items()
    }
    try:
        data = yaml.load(text, Loader)
    except yaml.YAMLError as error:
        raise RecipeError(f"{where} is not YAML: {error}.", "Correct the line it names.") from None
    try:
        return build(cls, {} if data is None else data, RecipeError)
    except RecipeError as error:
        raise RecipeError(f"{where}: {error.problem}", error.advice) from None


def write_recipe(recipe: Any, path: Path) -> None:  # noqa: ANN401
    """Write a recipe dataclass as YAML, beside what it made."""
    import yaml

    if not is_dataclass(recipe):
        raise TypeError(f"a recipe is a dataclass, not {type(recipe).__name__}")
    with written_whole(path) as file:
        file.write(yaml.safe_dump(plain(recipe), sort_keys=False, allow_unicode=True).encode())


def check_one_of(name: str, value: str, allowed: tuple[str, ...]) -> None:
    """Raise a RecipeError if a setting has none of the allowed values."""
    if value not in allowed:
        raise RecipeError(f"{name} is {value!r}.", f"Give one of: {', '.join(allowed)}.")


def check_range(name: str, value: float, low: float, high: float) -> None:
    """Raise a RecipeError if a setting is outside of its range, bounds included, or not a number."""
    if not low <= value <= high:  # also catches NaN
        raise RecipeError(f"{name} is {value}.", f"Give a number from {low:g} to {high:g}.")

"""The grid of a sweep: a row for each way to train, a run for each row and seed.

A sweep's file names a base recipe, and for each row what differs from it. Rows are checked before anything
runs: an unknown setting is an error that names its row.
"""

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, is_dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, get_args

from listenwell.errors import InputError, ListenwellError, RecipeError, unknown_name
from listenwell.files import slug
from listenwell.recipe import read_recipe, write_recipe
from listenwell.serialization import accepted_keys, build, plain
from listenwell.training.recipe import TrainRecipe

RUNS = Path("runs")


@dataclass(frozen=True)
class SweepConfig:
    """A sweep's YAML file."""

    name: str
    """The folder of its runs; letters, digits, - and _."""
    runs: tuple[tuple[str, dict[str, Any] | None], ...]
    """The name of a row, and what differs there from the recipe: any of its settings, nested as there (see
    `merged`), another `recipe`, or `seeds`: some of the sweep's, where a row takes too long for all."""
    recipe: Path | None = None
    """The base of all rows; a path relative to the sweep's file."""
    seeds: tuple[int, ...] = (1,)
    table: str | None = None
    """The results' task for the rows; that of the runs where it is left out."""
    about: str = ""
    compare: tuple[tuple[str, str], ...] = ()
    """Rows whose gain over another row becomes a result too, with its confidence interval."""

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]*", self.name):
            raise RecipeError(f"The sweep's name is {self.name!r}.", "Use letters, digits, - and _.")
        if not self.seeds or len(set(self.seeds)) < len(self.seeds):
            raise RecipeError(
                f"The sweep's seeds are {list(self.seeds)}.", "Give one at least, and none twice."
            )
        if not self.runs:
            raise RecipeError("The sweep has no runs.", "Add runs: a row's name and what differs there.")
        by_slug: dict[str, str] = {}
        for row, _ in self.runs:
            if (other := by_slug.setdefault(slug(row), row)) != row:
                raise RecipeError(
                    f"The rows {other!r} and {row!r} would share the folder {slug(row)!r}.", "Rename one."
                )


class Job(NamedTuple):
    """A program to run, and the file that gets all that it prints; one that is there is written on."""

    command: tuple[str, ...]
    log: Path


@dataclass(frozen=True)
class SweepRun:
    """One row of a sweep with one seed."""

    sweep: str
    row: str
    seed: int
    recipe: TrainRecipe

    @property
    def name(self) -> str:
        """What it is called in messages."""
        return f"{self.sweep}: {self.row}, seed {self.seed}"

    @property
    def result(self) -> Path:
        """The file that a finished run has written."""
        return self.recipe.output / "result.json"

    def is_finished(self) -> bool:
        """Whether its result exists; one of another recipe is an error."""
        used = self.recipe.output / "recipe.yaml"
        if not self.result.is_file():
            return False
        if used.is_file() and _compared(read_recipe(TrainRecipe, used)) != _compared(self.recipe):
            raise RecipeError(
                f"{self.name}: {self.recipe.output} holds the result of another recipe.",
                "Remove that folder, or name another with --root.",
            )
        return True

    def job(self) -> Job:
        """The process that trains it; its recipe and its log stand beside its folder."""
        file, log = (
            self.recipe.output.with_name(f"{self.recipe.output.name}.{end}") for end in ("yaml", "log")
        )
        write_recipe(self.recipe, file)
        return Job((sys.executable, "-m", "listenwell.training", str(file)), log)


@dataclass(frozen=True)
class Sweep:
    """A sweep and all its runs."""

    file: Path
    config: SweepConfig
    runs: tuple[SweepRun, ...]
    """By seed, then by row: stopped early, all rows have the first seeds."""

    def seeds_of(self, row: str) -> tuple[int, ...]:
        """The seeds of a row's runs."""
        return tuple(run.seed for run in self.runs if run.row == row)


def read_sweeps(files: Sequence[Path], root: Path = RUNS, limit: int | None = None) -> list[Sweep]:
    """Read the files of sweeps; each gets the folder of its name in `root`, a rehearsal (`limit`) its own."""
    sweeps: dict[str, Sweep] = {}
    for file in files:
        sweep = _sweep(file, root, limit)
        if sweep.config.name in sweeps:
            raise InputError(f"Two sweeps are named {sweep.config.name!r}.", "Rename one.")
        sweeps[sweep.config.name] = sweep
    return list(sweeps.values())


def select(sweeps: Sequence[Sweep], only: Sequence[str] = (), seeds: Sequence[int] = ()) -> list[SweepRun]:
    """The runs of some rows and seeds; of all where none are named. An unknown row or seed is an error."""
    rows = [row for sweep in sweeps for row, _ in sweep.config.runs]
    for name in only:
        if name not in rows:
            raise unknown_name("row", name, rows)
    for config in (sweep.config for sweep in sweeps):
        if unknown := [seed for seed in seeds if seed not in config.seeds]:
            known = ", ".join(map(str, config.seeds))
            raise InputError(f"The sweep {config.name} has no seed {unknown[0]}.", f"Give some of: {known}.")
    runs = (run for sweep in sweeps for run in sweep.runs)
    return [run for run in runs if (not only or run.row in only) and (not seeds or run.seed in seeds)]


def _sweep(file: Path, root: Path, limit: int | None) -> Sweep:
    config = read_recipe(SweepConfig, file)
    folder = root / (config.name if limit is None else f"{config.name}-limit{limit}")
    recipes: dict[str, tuple[TrainRecipe, Sequence[int]]] = {}
    for row, changes in config.runs:
        try:
            recipes[row] = _row(config, changes or {}, file.parent)
        except ListenwellError as error:
            raise RecipeError(f"{file}, row {row!r}: {error.problem}", error.advice) from None
    runs = []
    for seed in config.seeds:
        for row, (recipe, seeds) in recipes.items():
            if seed in seeds:
                data = replace(recipe.data, limit=limit or recipe.data.limit)
                with_seed = replace(recipe, output=folder / f"{slug(row)}-seed{seed}", seed=seed, data=data)
                runs.append(SweepRun(config.name, row, seed, with_seed))
    return Sweep(file, config, tuple(runs))


def _row(config: SweepConfig, changes: dict[str, Any], folder: Path) -> tuple[TrainRecipe, Sequence[int]]:
    """A row's recipe, the base with the row's changes, and its seeds."""
    own = {"recipe": config.recipe, "seeds": config.seeds} | changes
    base_file, seeds = own.pop("recipe"), own.pop("seeds")
    if base_file is None:
        raise RecipeError("It has no recipe.", "Name one for the sweep or for this row.")
    for key in ("output", "seed"):
        if key in own:
            raise RecipeError(f"It sets {key!r}, which the sweep sets.", "Leave it out.")
    if not isinstance(seeds, list | tuple) or not seeds or not set(seeds) <= set(config.seeds):
        known = ", ".join(map(str, config.seeds))
        raise RecipeError(f"its seeds are {seeds}.", f"Give a list of some of: {known}.")
    base = plain(read_recipe(TrainRecipe, folder / base_file))
    return build(TrainRecipe, merged(base, own, TrainRecipe), RecipeError), seeds


def merged(base: Mapping[str, Any], changes: Mapping[str, Any], cls: type) -> dict[str, Any]:
    """The base with the changes put in, both as a file of `cls` has them.

    A section changes only in the settings that are named. An object whose names are free, such as corpora
    with counts, is taken whole. Sections of the base that a row's other task does not have are left out.
    """
    keys = accepted_keys(cls, {**base, **changes})
    result = {key: value for key, value in base.items() if key in keys}
    for old_key, value in changes.items():
        key, _, hint = keys.get(old_key, (old_key, None, None))
        before, section = result.get(key), _section(hint)
        if section is not None and isinstance(before, Mapping) and isinstance(value, Mapping):
            result[key] = merged(before, value, section)
        else:
            result[key] = value
    return result


def _section(hint: Any) -> type | None:  # noqa: ANN401
    """The dataclass of a field, also of one that may be left out; None for other fields."""
    types = (hint, *get_args(hint))
    return next((part for part in types if isinstance(part, type) and is_dataclass(part)), None)


def _compared(recipe: TrainRecipe) -> TrainRecipe:
    """A recipe without paths and without what changes no metric."""
    data = replace(recipe.data, path=None, annotated=None)
    return replace(recipe, output=Path(), weights=None, save_seconds=1.0, data=data)

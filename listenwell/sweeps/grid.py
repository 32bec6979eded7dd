"""The grid of a study: a row for each way to train, a run for each row and seed.

A study's file names a base recipe, and for each row what differs from it. Rows are checked before anything
runs: an unknown setting is an error that names its row.
"""

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, is_dataclass, replace
from pathlib import Path
from typing import Any, get_args, get_type_hints

from listenwell.errors import InputError, ListenwellError, RecipeError, unknown_name
from listenwell.files import slug
from listenwell.recipe import read_recipe, write_recipe
from listenwell.serialization import build, plain
from listenwell.sweeps.jobs import Job
from listenwell.training.recipe import TrainRecipe

RUNS = Path("runs")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
_NOT_OF_A_ROW = ("output", "seed")
_OF_A_ROW = ("recipe", "seeds")


@dataclass(frozen=True)
class Sweep:
    """A study as its YAML file has it."""

    name: str
    """Its runs' folder; letters, figures, - and _."""
    runs: tuple[tuple[str, dict | None], ...]  # type: ignore[type-arg]
    """The name of a row, and what differs there from the recipe: any of its settings, nested as there (see
    `merged`), another `recipe`, or `seeds`: some of the study's, where a row takes too long for all."""
    recipe: Path | None = None
    """What all rows begin with; a file beside or below the study's."""
    seeds: tuple[int, ...] = (1,)
    table: str | None = None
    """The ledger's table for the rows; that of the runs where it is left out."""
    about: str = ""
    compare: tuple[tuple[str, str], ...] = ()
    """Rows whose gain over another is gathered too, with its confidence interval."""

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise RecipeError(f"The study's name is {self.name!r}.", "Use letters, figures, - and _.")
        if not self.seeds or len(set(self.seeds)) < len(self.seeds):
            raise RecipeError(
                f"The study's seeds are {list(self.seeds)}.", "Give one at least, and none twice."
            )
        if not self.runs:
            raise RecipeError("The study has no runs.", "Add runs: a row's name and what differs there.")
        by_slug: dict[str, str] = {}
        for row, _ in self.runs:
            if (other := by_slug.setdefault(slug(row), row)) != row:
                raise RecipeError(
                    f"The rows {other!r} and {row!r} would share the folder {slug(row)!r}.", "Rename one."
                )


@dataclass(frozen=True)
class Run:
    """One row of a study with one seed."""

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
        """Whether its result is there; one that another recipe made is an error."""
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
        """The process that trains it; its recipe and its log lie beside its folder."""
        folder = self.recipe.output
        file = folder.with_name(f"{folder.name}.yaml")
        write_recipe(self.recipe, file)
        command = (sys.executable, "-m", "listenwell.training", str(file))
        return Job(command, folder.with_name(f"{folder.name}.log"))


@dataclass(frozen=True)
class Plan:
    """A study and all its runs."""

    file: Path
    sweep: Sweep
    runs: tuple[Run, ...]
    """By seed, then by row: stopped early, all rows have the first seeds."""

    def seeds_of(self, row: str) -> tuple[int, ...]:
        """The seeds a row is run with."""
        return tuple(run.seed for run in self.runs if run.row == row)

    def chosen(self, only: Sequence[str] = (), seeds: Sequence[int] = ()) -> list[Run]:
        """The runs of some rows and seeds; of all where none are named."""
        for seed in seeds:
            if seed not in self.sweep.seeds:
                known = ", ".join(map(str, self.sweep.seeds))
                raise InputError(
                    f"The study {self.sweep.name} has no seed {seed}.", f"Give some of: {known}."
                )
        return [
            run
            for run in self.runs
            if (not only or run.row in only) and (not seeds or run.seed in seeds)
        ]  # fmt: skip


def read_plans(files: Sequence[Path], root: Path = RUNS, limit: int | None = None) -> list[Plan]:
    """Read study files; each gets the folder of its name in `root`.

    Args:
        files: YAML files.
        root: where the runs' folders are.
        limit: only so many dialogues of each split; such a rehearsal has a folder of its own.
    """
    plans: dict[str, Plan] = {}
    for file in files:
        plan = _plan(file, root, limit)
        if plan.sweep.name in plans:
            raise InputError(f"Two studies are named {plan.sweep.name!r}.", "Rename one.")
        plans[plan.sweep.name] = plan
    return list(plans.values())


def choose(plans: Sequence[Plan], only: Sequence[str] = (), seeds: Sequence[int] = ()) -> list[Run]:
    """The runs of several studies, as `Plan.chosen`; a row that none of them has is an error."""
    rows = [row for plan in plans for row, _ in plan.sweep.runs]
    for name in only:
        if name not in rows:
            raise unknown_name("row", name, rows)
    return [run for plan in plans for run in plan.chosen(only, seeds)]


def _plan(file: Path, root: Path, limit: int | None) -> Plan:
    sweep = read_recipe(Sweep, file)
    folder = root / (sweep.name if limit is None else f"{sweep.name}-limit{limit}")
    recipes = {row: _row_recipe(file, sweep, row, changes or {}) for row, changes in sweep.runs}
    own_seeds = {row: _row_seeds(file, sweep, row, changes or {}) for row, changes in sweep.runs}
    runs = []
    for seed in sweep.seeds:
        for row, recipe in recipes.items():
            if seed not in own_seeds[row]:
                continue
            data = replace(recipe.data, limit=limit or recipe.data.limit)
            output = folder / f"{slug(row)}-seed{seed}"
            runs.append(Run(sweep.name, row, seed, replace(recipe, output=output, seed=seed, data=data)))
    return Plan(file, sweep, tuple(runs))


def _row_recipe(file: Path, sweep: Sweep, row: str, changes: Mapping[str, Any]) -> TrainRecipe:
    """The recipe of a row: the base with the row's changes; a wrong one is named with its row."""
    named = changes.get("recipe", sweep.recipe)
    try:
        if named is None:
            raise RecipeError("It has no recipe.", "Name one for the study or for this row.")
        for key in _NOT_OF_A_ROW:
            if key in changes:
                raise RecipeError(f"It sets {key!r}, which the study gives.", "Leave it out.")
        base = _written(plain(read_recipe(TrainRecipe, file.parent / named)))
        own = {key: value for key, value in changes.items() if key not in _OF_A_ROW}
        return build(TrainRecipe, merged(base, own, TrainRecipe), RecipeError)
    except ListenwellError as error:
        raise RecipeError(f"{file}, row {row!r}: {error.problem}", error.advice) from None


def _row_seeds(file: Path, sweep: Sweep, row: str, changes: Mapping[str, Any]) -> tuple[int, ...]:
    """A row's own seeds, in the study's order; all of the study's where it names none."""
    given = changes.get("seeds", sweep.seeds)
    if not isinstance(given, list | tuple) or not given or not set(given) <= set(sweep.seeds):
        known = ", ".join(map(str, sweep.seeds))
        raise RecipeError(f"{file}, row {row!r}: its seeds are {given}.", f"Give a list of some of: {known}.")
    return tuple(seed for seed in sweep.seeds if seed in given)


def merged(base: Mapping[str, Any], changes: Mapping[str, Any], cls: type) -> dict[str, Any]:
    """The base with the changes put in, both as a file of `cls` has them.

    A part with settings of its own changes only in those that are named. An object whose names are free, such
    as corpora with counts, is taken whole: what a row does not name is not there.
    """
    hints, result = get_type_hints(cls), dict(base)
    for key, value in changes.items():
        old, part = result.get(key), _part(hints.get(key))
        if part is not None and isinstance(old, Mapping) and isinstance(value, Mapping):
            result[key] = merged(old, value, part)
        else:
            result[key] = value
    return result


def _part(hint: Any) -> type | None:  # noqa: ANN401
    """The dataclass of a field, also of one that may be left out; None where it is none."""
    return next((one for one in (hint, *get_args(hint)) if isinstance(one, type) and is_dataclass(one)), None)


def _written(value: Any) -> Any:  # noqa: ANN401
    """A value as a YAML file would have it: a path is text, also inside a list or an object."""
    if isinstance(value, Mapping):
        return {key: _written(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_written(item) for item in value]
    return str(value) if isinstance(value, Path) else value


def _compared(recipe: TrainRecipe) -> TrainRecipe:
    """A recipe without the places of files and what moves no figure."""
    data = replace(recipe.data, path=None, annotated=None)
    return replace(recipe, output=Path(), weights=None, save_seconds=1.0, data=data)

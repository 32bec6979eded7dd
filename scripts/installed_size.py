"""How much room an environment takes, by package, the largest first.

    python scripts/installed_size.py .venv
    python scripts/installed_size.py .venv --runtime

With `--runtime` only what a plain `pip install .` brings is counted, extras left out, as if the environment
held nothing else. Sizes are the bytes of the files, in millions (MB). Base models are counted apart: they are
data, and can be taken from elsewhere (`--weights`). So is what makes an environment and does not run in it
(pip, setuptools). Compiled Python (`__pycache__`) is a part of its package, and has a column of its own: `pip
install --no-compile` leaves it out, and Python then writes that of the modules that are imported.
"""

import argparse
import json
import sys
import tomllib
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from importlib.metadata import Distribution, distributions
from pathlib import Path

import listenwell
from listenwell.runtime.weights import BASE_MODELS

ROOT = Path(__file__).resolve().parents[1]
AIM = 400
"""MB that the packages may take."""
OURS = "listenwell"
TOOLS = frozenset({"pip", "setuptools", "wheel"})
BASES = frozenset(model.wheel.split("==")[0] for model in BASE_MODELS.values())
NOBODY = "(no package's)"
KINDS = {"runtime": "Packages", "base": "Base models", "tools": "Tools of the environment"}


@dataclass(frozen=True)
class Installed:
    """A package with its files."""

    name: str
    version: str
    kind: str
    """One of KINDS."""
    mb: float
    compiled_mb: float
    """Of these, compiled Python."""


def find_packages(environment: Path) -> Path:
    """The folder of an environment that packages are installed into."""
    for place in (environment, environment / "Lib" / "site-packages"):  # given as it is; Windows
        if place.name == "site-packages" and place.is_dir():
            return place
    found = sorted(environment.glob("lib/python*/site-packages"))
    if not found:
        raise SystemExit(f"{environment} is no environment of Python. Name the folder of one, such as .venv.")
    return found[-1]


def sizes(packages: Path) -> list[Installed]:
    """Every package below a folder; each file is counted once, and none is left out."""
    owners: dict[Path, str] = {}
    names = {NOBODY: ""}
    for one in distributions(path=[str(packages)]):
        name = _name(one.metadata["Name"])
        names[name] = one.version
        owners |= dict.fromkeys(_places(one, packages), name)
    total, compiled = dict.fromkeys(names, 0), dict.fromkeys(names, 0)
    for file, size in _files(packages):
        owner = owners.get(_source(file), NOBODY)
        total[owner] += size
        compiled[owner] += size * (file.suffix == ".pyc")
    found = [
        Installed(name, version, _kind(name), total[name] / 1e6, compiled[name] / 1e6)
        for name, version in names.items()
    ]
    return sorted(found, key=lambda one: -one.mb)


def with_ours(found: Iterable[Installed]) -> list[Installed]:
    """The same with our package, where it is not installed or stays in its checkout (`pip install -e`)."""
    others = [one for one in found if one.name != OURS or one.mb > 1]
    if not any(one.name == OURS for one in others):
        files = dict(_files(Path(listenwell.__file__).parent))
        compiled = sum(size for file, size in files.items() if file.suffix == ".pyc")
        version = listenwell.__version__
        others.append(Installed(OURS, version, "runtime", sum(files.values()) / 1e6, compiled / 1e6))
    return sorted(others, key=lambda one: -one.mb)


def needed(packages: Path, requirements: Iterable[str]) -> set[str]:
    """The packages that requirements bring along, base models and ourselves."""
    from packaging.requirements import Requirement

    there = {_name(one.metadata["Name"]): one for one in distributions(path=[str(packages)])}
    found, waiting = {OURS, *BASES}, [(Requirement(line), "") for line in requirements]
    while waiting:
        asked, extra = waiting.pop()
        name = _name(asked.name)
        if asked.marker and not asked.marker.evaluate({"extra": extra}):
            continue
        if name in found and not asked.extras:
            continue
        found.add(name)
        own = [Requirement(line) for line in (there[name].requires or ())] if name in there else []
        waiting += [(one, part) for one in own for part in ("", *asked.extras)]
    return found


def _name(written: str) -> str:
    return written.lower().replace("_", "-")


def _files(folder: Path) -> Iterable[tuple[Path, int]]:
    """Every file below a folder and its size."""
    for file in folder.rglob("*"):
        if file.is_file() and not file.is_symlink():
            yield file, file.stat().st_size


def _places(one: Distribution, packages: Path) -> Iterable[Path]:
    """A package's own files, where they lie; those outside of the folder (scripts) are a few bytes."""
    root = packages.resolve()
    for file in one.files or ():
        place = Path(str(one.locate_file(file))).resolve()
        if place.is_relative_to(root):
            yield packages / place.relative_to(root)


def _source(file: Path) -> Path:
    """The file that compiled Python was made from; another one is its own."""
    if file.suffix == ".pyc" and file.parent.name == "__pycache__":
        return file.parent.parent / f"{file.name.split('.')[0]}.py"
    return file


def _kind(name: str) -> str:
    return "base" if name in BASES else "tools" if name in TOOLS else "runtime"


def table(found: Iterable[Installed], least: float) -> str:
    """Lines for people; packages smaller than `least` MB are one line."""
    lines, rows = [], list(found)
    for kind, title in KINDS.items():
        ours = [one for one in rows if one.kind == kind]
        if not ours:
            continue
        small = [one for one in ours if one.mb < least]
        shown = [(f"{one.name} {one.version}".strip(), one) for one in ours if one.mb >= least]
        lines += [
            _line(title, sum(one.mb for one in ours), sum(one.compiled_mb for one in ours)),
            *(_line(f"  {label}", one.mb, one.compiled_mb) for label, one in shown),
        ]
        if small:
            rest = f"  {len(small)} others"
            lines.append(_line(rest, sum(one.mb for one in small), sum(one.compiled_mb for one in small)))
    lines.append(_line("In all", sum(one.mb for one in rows), sum(one.compiled_mb for one in rows)))
    return "\n".join([f"{'':40}{'MB':>8}{'compiled':>10}", *lines])


def _line(label: str, mb: float, compiled: float) -> str:
    return f"{label:40}{mb:8.1f}{compiled:10.1f}"


def main() -> None:
    """Print the table, or the same as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("environment", type=Path, nargs="?", default=Path(sys.prefix), help="its folder")
    parser.add_argument("--runtime", action="store_true", help="only what a plain install brings")
    parser.add_argument("--least", type=float, default=1.0, help="MB below which packages are put together")
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args()
    packages = find_packages(chosen.environment)
    found = with_ours(sizes(packages))
    if chosen.runtime:
        project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        wanted = needed(packages, project["dependencies"])
        found = [one for one in found if one.name in wanted]
    if chosen.json:
        print(json.dumps([asdict(one) for one in found], indent=1))
        return
    print(table(found, chosen.least))
    runtime, models = (sum(one.mb for one in found if one.kind == kind) for kind in ("runtime", "base"))
    side = "within" if runtime <= AIM else "over"
    print(
        f"The packages take {runtime:.0f} MB, {side} {AIM}; with the base models {runtime + models:.0f} MB."
    )


if __name__ == "__main__":
    main()

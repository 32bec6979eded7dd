"""How pages call the systems and tasks of result files, whose own names never change."""

from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import yaml


def read_yaml(name: str) -> dict[str, Any]:
    """A data file of this folder."""
    content: dict[str, Any] = yaml.safe_load(files(__package__).joinpath(name).read_text(encoding="utf-8"))
    return content


_NAMES = read_yaml("names.yaml")


def display_name(system: str) -> str:
    """A system's name as pages and figures show it."""
    if system in _NAMES["systems"]:
        return str(_NAMES["systems"][system])
    kind, separator, feature = system.partition(": ")
    if kind == "judge" and separator:
        return feature_names(feature)
    for old, new in _NAMES["parts"].items():
        system = system.replace(old, new)
    whole, separator, features = system.partition(" without ")
    return f"{whole} without {feature_names(features)}" if separator else system


def feature_names(features: str) -> str:
    """The names of switched-off stages or features, separated by commas."""
    return ", ".join(_NAMES["features"].get(name, name) for name in features.split(", "))


@dataclass(frozen=True)
class Page:
    """One page of docs/results."""

    slug: str
    title: str
    intro: str
    sections: dict[str, str]
    """Tasks as result files name them, each with the title of its section."""


PAGES = tuple(Page(slug, **fields) for slug, fields in read_yaml("pages.yaml").items())
"""Every page, in the order of the contents list."""

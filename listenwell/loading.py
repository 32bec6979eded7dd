"""From names and settings to the stages of a listener."""

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from listenwell.checkpoint import MANIFEST, find_checkpoint, kind_of
from listenwell.errors import InputError, unknown_name
from listenwell.generators import GENERATORS, GENERATORS_BY_KIND
from listenwell.pipeline import Guard, Rerank
from listenwell.reranking.config import ANNOTATED, FEATURES, OLD_NAMES, REMOVED

if TYPE_CHECKING:
    from listenwell.annotators.annotator import Annotator

STAGES = ("understand", "plan", "rerank", "guard")
"""The stages that can be switched off, in their order."""
OLD_PARTS = {"choose": "rerank", "speak": "generate", "voice": "soft_prompt"} | OLD_NAMES
"""Names of parts in earlier releases, still accepted by `without`."""


def resolve(name_or_folder: str | Path, weights: Path | str | None) -> tuple[str, Path | str | None]:
    """The model's name, and its weights: a folder's checkpoint says which model it is."""
    path = Path(name_or_folder)
    if str(name_or_folder) in GENERATORS or not path.exists():
        return str(name_or_folder), weights
    if weights is not None:
        raise InputError(f"{path} and weights are both folders with weights.", "Give one of them.")
    if not (find_checkpoint(path) / MANIFEST).is_file():
        return "prompted", path  # a base model's folder, or a GGUF file
    kind = kind_of(find_checkpoint(path))
    if kind not in GENERATORS_BY_KIND:
        raise InputError(
            f"{path} holds a {kind!r} checkpoint, which is no generator.", "Name another folder."
        )
    return GENERATORS_BY_KIND[kind], path


def with_settings(model: str, config: Any, precision: str | None, settings: Mapping[str, object]) -> Any:  # noqa: ANN401
    """A generator's config with the settings that were given; one that it does not have is an error."""
    changes = {name: value for name, value in settings.items() if value is not None}
    known = {field.name for field in fields(config)}
    missing = [name for name in changes if name not in known]
    if missing or (precision and "engine" not in known):
        name = missing[0] if missing else "precision"
        raise InputError(f"The model {model} has no {name}.", f"Leave {name} out, or name another model.")
    if precision:
        changes["engine"] = replace(config.engine, precision=precision)
    return replace(config, **changes)


def switched_off(names: Sequence[str], parts: Mapping[str, str]) -> frozenset[str]:
    """The parts to leave out, by their names of today; an unknown name is an error."""
    known = (*STAGES, *parts, *FEATURES)
    current = [OLD_PARTS.get(name, name) for name in names if name not in REMOVED]
    for name in current:
        if name not in known:
            raise unknown_name("part of this listener", name, known)
    return frozenset(current)


def load_reranker(off: frozenset[str], annotator: "Annotator | None") -> Rerank:
    """The reranker without the features that are off."""
    from listenwell.reranking.config import RerankerConfig
    from listenwell.reranking.reranker import Reranker

    return Reranker.load(RerankerConfig(without=tuple(name for name in FEATURES if name in off)), annotator)


def load_guard(country: str | None) -> Guard:
    """The shipped guard."""
    from listenwell.safety.guard import Guard as SafetyGuard

    return SafetyGuard.load(country)


def load_annotator(off: frozenset[str]) -> "Annotator | None":
    """One annotator for the emotion and for the reranking features."""
    from listenwell.annotators.annotator import Annotator
    from listenwell.annotators.heads import REPLY_HEADS

    heads = (() if "understand" in off else ("emotion",)) + (() if off.issuperset(ANNOTATED) else REPLY_HEADS)
    return Annotator.load(heads=heads) if heads else None

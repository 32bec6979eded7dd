"""Systems under evaluation: a generator alone or a whole listener, and every setting of it in words."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np

from listenwell.dialogue import Dialogue, Example, Factors
from listenwell.errors import InputError
from listenwell.generators import GENERATORS
from listenwell.listener import Listener
from listenwell.metrics import Perplexity
from listenwell.pipeline import Generate
from listenwell.recipe import read_recipe
from listenwell.runtime.engines import TORCH, is_installed
from listenwell.runtime.model_files import model_files as base_files
from listenwell.runtime.weights import find_weights
from listenwell.serialization import dumps

GOLD, PREDICTED, NONE, MARGINAL = FACTORS = ("gold", "predicted", "none", "marginal")
FACTOR_TITLES = {
    GOLD: "gold factors",
    PREDICTED: "predicted factors",
    NONE: "no factors",
    MARGINAL: "factors summed over",
}
"""How the name of a row says which factors the generator had."""
FACTOR_NOTES = {
    GOLD: "gold: those of the human reply, as our annotators label it; the generator has information that it"
    " could not have in use",
    PREDICTED: "predicted: the generator's own",
    NONE: "none; a generator that can write a plan is told that there is none",
    MARGINAL: "marginal: the likelihood summed over the generator's own plans",
}
LISTENER_PLANS = "predicted: the listener's own plans"
GENERATOR_BATCH, LISTENER_BATCH = 64, 16
"""Dialogues in a batch: for a generator alone, and for a whole listener on a GPU, which generates several
candidates for each."""
STAGES = ("understand", "plan", "rerank", "guard")


@runtime_checkable
class HasKey(Protocol):
    """A model that is identified by a hash of its files and settings."""

    key: str


@runtime_checkable
class FactorModel(Protocol):
    """A generator that predicts the factors of a reply; its perplexity depends on which factors it has."""

    name: str

    def factor_probabilities(self, dialogue: Dialogue, known: Factors, /) -> Mapping[str, np.ndarray]:
        """Probabilities of the next factor that is not given, and perhaps of later ones."""
        ...

    def perplexity(
        self, examples: Iterable[Example], factors: str = GOLD, seeds: Iterable[int] | None = None
    ) -> Perplexity:
        """The perplexity of human replies under the given kind of factors."""
        ...


@runtime_checkable
class LanguageModel(Protocol):
    """A generator without factors that can compute the perplexity of human replies."""

    name: str

    def perplexity(self, examples: Iterable[Example]) -> Perplexity:
        """The perplexity of human replies."""
        ...


@dataclass(frozen=True)
class System:
    """A system under evaluation: the generator by name, its settings and weights, and what surrounds it."""

    model: str
    weights: Path | None = None
    recipe: Path | None = None
    whole: bool = False
    """The whole listener with all its stages, instead of the generator alone."""
    without: tuple[str, ...] = ()
    """Stages and reranking features of the whole listener that are switched off."""

    def __post_init__(self) -> None:
        if self.without and not self.whole:
            raise InputError("A generator alone has nothing to switch off.", "Evaluate the whole listener.")

    def generator(self) -> Any:  # noqa: ANN401 - any generator
        """The generator alone, on a GPU where there is one, with one plan and one candidate."""
        generator: Any = GENERATORS.load(self.model)
        config = read_recipe(generator.Config, self.recipe) if self.recipe else generator.Config()
        fields = config.__dataclass_fields__
        changes: dict[str, Any] = {name: 1 for name in ("plans", "candidates") if name in fields}
        if "engine" in fields:  # fp32: the results of a model alone are exact
            name = TORCH if _has_gpu() else config.engine.name  # onnxruntime stays on the CPU
            changes["engine"] = replace(config.engine, name=name, precision="fp32")
        loaded = generator.load(replace(config, **changes), self.weights)
        loaded.use_gpu()
        return loaded

    def listener(self) -> Listener:
        """The whole listener, or a listener that consists of the generator alone."""
        if not self.whole:
            generator = self.generator()
            return Listener(generator, plan=generator if generator.can_plan() else None)
        listener = Listener.from_pretrained(
            self.model, recipe=self.recipe, weights=self.weights, without=self.without
        )
        listener.generate.use_gpu()
        return listener

    def batch_size(self) -> int:
        """Dialogues in a batch; a whole listener on a CPU gains nothing from more than one."""
        if self.whole:
            return LISTENER_BATCH if _has_gpu() else 1
        return GENERATOR_BATCH


def row_name(system: str, factors: str | None = None, without: Iterable[str] = ()) -> str:
    """The name of a row: the system, which factors it had, and what was switched off."""
    name = f"{system}, {FACTOR_TITLES[factors]}" if factors else system
    off = ", ".join(without)
    return f"{name} without {off}" if off else name


def model_files(generator: Generate, weights: Path | None) -> tuple[Path, ...]:
    """The files of a generator's checkpoint, or of its base model."""
    if files := tuple(generator.files()):
        return files
    settings = _settings(generator)
    if settings.get("base") is None:
        return ()
    return base_files(find_weights(str(settings["base"]), weights))


def listener_conditions(listener: Listener) -> dict[str, str]:
    """Every setting of a listener in words, defaults included.

    What a generator says of itself (`conditions()`) replaces settings of the same names; the reranker's
    conditions (the weight of each feature, the annotator, what was left out) are spelled out under names that
    begin with "reranker".
    """
    settings = _settings(listener.generate)
    decoding = settings.pop("decoding", None)
    own = listener.generate.conditions()
    stages = [stage for stage in STAGES if getattr(listener, stage) is not None]
    conditions = {
        "model": listener.generate.name,
        "decoding": _in_words(decoding) if isinstance(decoding, Mapping) else "the model's own",
        "factors": "predicted" if listener.plan else "none",
        "pool": "none: replies were generated",
        "stages": ", ".join(["generate", *stages]),
        "settings": dumps({name: value for name, value in settings.items() if name not in own}),
    }
    if listener.generate.runtime is not None:  # which engine "auto" resolved to
        conditions["engine"] = type(listener.generate.runtime).__name__
    if isinstance(listener.understand, HasKey):
        conditions["emotion recognized by"] = f"our annotators, key {listener.understand.key[:12]}"
    reranker = listener.rerank.conditions() if listener.rerank else {}
    spelled_out = {
        name if name.startswith("rerank") else f"reranker: {name}": value for name, value in reranker.items()
    }
    return conditions | spelled_out | own


def _settings(generator: Generate) -> dict[str, Any]:
    """The generator's config as a mapping; empty where it has none."""
    return {} if generator.config is None else asdict(generator.config)


def _in_words(settings: Mapping[str, object]) -> str:
    """Settings in words: `temperature 0.3, top_p 0.9`."""
    return ", ".join(
        _in_words(value) if isinstance(value, Mapping) else f"{name} {value}"
        for name, value in settings.items()
    )


def _has_gpu() -> bool:
    if not is_installed("torch"):
        return False
    import torch

    return bool(torch.cuda.is_available())

"""Generators: each turns a dialogue into candidate replies."""

from typing import TYPE_CHECKING

from listenwell.registry import Registry

if TYPE_CHECKING:
    from listenwell.generators.base import Generator

GENERATORS: "Registry[type[Generator]]" = Registry(
    "model",
    {
        "comae": "listenwell.papers.comae.generator:Comae",
        "instructed": "listenwell.generators.instructed:Instructed",
        "planned": "listenwell.generators.planned:PlannedGenerator",
        "prompted": "listenwell.generators.prompted:Prompted",
        "retrieval": "listenwell.retrieval.generator:Retrieval",
        "vanilla": "listenwell.generators.vanilla:Vanilla",
    },
)
"""Name to class; `Listener.from_pretrained(NAME)` takes these."""
GENERATORS_BY_KIND = {"planned": "planned", "causal": "vanilla", "comae": "comae"}
"""The kind of a checkpoint to the name of its generator."""
DEFAULT, INSTRUCTED = "planned", "instructed"
"""The default model, and the one that a larger base model of the user's becomes."""

"""Models that speak: each turns a dialogue into replies."""

from listenwell.registry import Registry

GENERATORS: Registry[type] = Registry(
    "model",
    {
        "comae": "listenwell.papers.comae.generator:Comae",
        "planned": "listenwell.generators.planned:PlannedGenerator",
        "prompted": "listenwell.generators.prompted:Prompted",
        "retrieval": "listenwell.retrieval.generator:Retrieval",
        "vanilla": "listenwell.generators.vanilla:Vanilla",
    },
)
"""Name to class; `Listener.load(model=NAME)` takes these."""

DEFAULT = "planned"
"""Who answers where nobody is named."""

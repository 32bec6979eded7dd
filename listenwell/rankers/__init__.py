"""Models that rank replies: f(context, persona, reply), the higher the better (PEC §4.1)."""

from listenwell.registry import Registry

RANKERS: Registry[type] = Registry(
    "ranker",
    {
        "bi": "listenwell.rankers.bi:BiEncoder",
        "poly": "listenwell.rankers.poly:PolyEncoder",
        "cobert": "listenwell.rankers.cobert:CoBERT",
        "hlstm": "listenwell.papers.rankers.hlstm:HLSTM",
        "memnet": "listenwell.papers.rankers.memnet:MemNet",
        "dam": "listenwell.papers.rankers.dam:DAM",
        "dim": "listenwell.papers.rankers.dim:DIM",
        "cross": "listenwell.rankers.cross:CrossEncoder",
    },
)
"""Name to class; a ranker's config names one of these."""

GENERATOR_SCORERS: Registry[type] = Registry(
    "generator that ranks",
    dict.fromkeys(("causal", "planned"), "listenwell.papers.rankers.likelihood:Likelihood"),
)
"""By the kind of a checkpoint: generators that rank replies by their likelihood."""

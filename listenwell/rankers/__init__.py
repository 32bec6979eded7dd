"""Models that choose a reply: f(context, persona, reply), the higher the better (PEC §4.1)."""

from listenwell.registry import Registry

RANKERS: Registry[type] = Registry(
    "ranker",
    {
        "bi": "listenwell.rankers.bi:BiEncoder",
        "poly": "listenwell.rankers.poly:PolyEncoder",
        "cobert": "listenwell.rankers.cobert:CoBERT",
        "hlstm": "listenwell.rankers.hlstm:HLSTM",
        "memnet": "listenwell.rankers.memnet:MemNet",
        "dam": "listenwell.rankers.dam:DAM",
        "dim": "listenwell.rankers.dim:DIM",
        "cross": "listenwell.rankers.cross:CrossEncoder",
    },
)
"""Name to class; a ranker's config names one of these."""

"""Corpora in their publishers' own formats, each with a loader that yields `Dialogue`s or `LabelledText`s."""

from listenwell.corpora.base import CorpusLoader, Item, Report
from listenwell.registry import Registry

__all__ = ["CORPORA", "CorpusLoader", "Item", "Report"]

CORPORA: Registry[type[CorpusLoader]] = Registry(
    "corpus",
    {
        "empathetic_dialogues": "listenwell.corpora.empathetic_dialogues:EmpatheticDialogues",
        "empathetic_dialogues_labels": "listenwell.corpora.empathetic_dialogues:LabelledEmpatheticDialogues",
        "empathetic_intents": "listenwell.corpora.empathetic_intents:EmpatheticIntents",
        "epitome": "listenwell.corpora.epitome:Epitome",
        "goemotions": "listenwell.corpora.goemotions:GoEmotions",
        "newsgroups": "listenwell.corpora.newsgroups:Newsgroups",
        "synthetic_persona_chat": "listenwell.corpora.synthetic_persona_chat:SyntheticPersonaChat",
        "esconv": "listenwell.corpora.esconv:ESConv",
        "pec": "listenwell.corpora.pec:PEC",
        "pec_happy": "listenwell.corpora.pec:HappyPEC",
        "pec_offmychest": "listenwell.corpora.pec:OffMyChestPEC",
        "jsonl": "listenwell.corpora.own:OwnJsonl",
    },
)

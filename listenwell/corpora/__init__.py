"""Corpora in their publishers' own formats, each with a loader that yields `Dialogue`s or `LabelledText`s."""

from collections.abc import Iterator
from pathlib import Path

from listenwell.corpora.base import CorpusLoader, Item, Report
from listenwell.dialogue import Dialogue
from listenwell.registry import Registry

__all__ = ["CORPORA", "CorpusLoader", "Item", "Report", "load_corpus"]

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
        "plain_talks": "listenwell.corpora.listening:PlainTalks",
        "plain_rewrites": "listenwell.corpora.listening:PlainRewrites",
        "rich_talks": "listenwell.corpora.listening:RichTalks",
        "rich_rewrites": "listenwell.corpora.listening:RichRewrites",
        "risk_messages": "listenwell.corpora.risk:RiskMessages",
        "everyday_messages": "listenwell.corpora.risk:EverydayMessages",
        "pec": "listenwell.corpora.pec:PEC",
        "pec_happy": "listenwell.corpora.pec:HappyPEC",
        "pec_offmychest": "listenwell.corpora.pec:OffMyChestPEC",
        "jsonl": "listenwell.corpora.own:OwnJsonl",
    },
)


def load_corpus(name_or_path: str | Path, split: str = "train") -> Iterator[Dialogue]:
    """The dialogues of a corpus.

    Args:
        name_or_path: a name of CORPORA, a JSONL file of dialogues, or a folder with a file for each split.
        split: train, valid or test; a file of your own holds all of them in one split.
    """
    path = Path(name_or_path)
    is_own = str(name_or_path) not in CORPORA and path.exists()
    loader = CORPORA.load("jsonl")(path) if is_own else CORPORA.load(str(name_or_path))()
    items = loader.read("all" if is_own and path.is_file() else split)
    return (item for item in items if isinstance(item, Dialogue))

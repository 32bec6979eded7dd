"""Published numbers of rankers: PEC with CoBERT (Zhong et al. 2020) and EmpatheticDialogues (Rashkin 2019).

Each row stands beside ours of the same system. PEC can be read but not downloaded: until someone measures on
it, its rows stand beside ours on Synthetic-Persona-Chat, the corpus here with personas, without a gap.
"""

from listenwell.results.published_number import Published

RANKING, TRANSFER = "ranking", "transfer"
PERSONA_SENTENCES, SWAPPED_SHARE = "persona sentences", "swapped share"
"""The ledger's tables of rankers."""
ED, SPC, PEC = "EmpatheticDialogues", "Synthetic-Persona-Chat", "PEC"

_ED = "Rashkin et al. 2019, Table 1"
_POOL = "test; P@1,100"
_REDDIT = "pre-trained on 1.7 billion Reddit conversations"
_SMALL = f"{_POOL}; 4 layers, {_REDDIT}"
_LARGE = f"{_POOL}; BERT base, 5 times our encoder, {_REDDIT}"

_PEC = "Zhong et al. 2020, Table"
_WITHOUT_BERT = "test; another corpus (Reddit); not pre-trained; 10 persona sentences"
_BERT = "test; another corpus (Reddit); BERT base, 5 times our encoder; 10 persona sentences"
_VALID = "valid; another corpus (Reddit); BERT base, 5 times our encoder, but for DIM; 10 persona sentences"
_COST = "inference on a V100, against its Bi-encoder; 10 persona sentences"


def _empathetic() -> list[Published]:
    rows = (
        ("Transformer, pre-trained alone", 43.25, f"{_SMALL}, not fine-tuned", ""),
        ("Transformer, fine-tuned", 56.90, _SMALL, "Transformer from scratch"),
        ("Transformer, EmoPrepend-1", 56.31, _SMALL, ""),
        ("Transformer, TopicPrepend-1", 56.38, _SMALL, ""),
        ("BERT, pre-trained alone", 49.94, f"{_LARGE}, not fine-tuned", ""),
        ("BERT, fine-tuned", 65.92, _LARGE, "Bi-encoder"),
        ("BERT, EmoPrepend-1", 66.04, _LARGE, "Bi-encoder with EmoPrepend-1"),
        ("BERT, TopicPrepend-1", 65.96, _LARGE, "Bi-encoder with TopicPrepend-1"),
    )
    return [
        Published(RANKING, f"{ED}: {name}", "R@1", value, _ED, said, f"{ED}: {ours}" if ours else "")
        for name, value, said, ours in rows
    ]


_NAMES = ("R@1", "R@10", "R@50", "MRR")
_TABLE_5 = {
    "PEC happy": {
        "BoW": (10.2, 45.6, 85.2, 21.8),
        "HLSTM": (15.7, 53.6, 91.6, 28.1),
        "DIM": (31.3, 67.0, 95.5, 43.0),
        "Bi-encoder": (32.4, 71.3, 96.5, 45.1),
        "Poly-encoder": (33.7, 72.1, 96.7, 46.4),
        "CoBERT": (36.2, 73.0, 96.9, 48.4),
    },
    "PEC offmychest": {
        "BoW": (13.9, 51.6, 87.1, 26.2),
        "HLSTM": (17.6, 55.7, 91.8, 30.2),
        "DIM": (40.6, 72.6, 96.4, 51.2),
        "Bi-encoder": (42.4, 78.4, 97.6, 54.5),
        "Poly-encoder": (43.4, 79.3, 97.7, 55.3),
        "CoBERT": (47.0, 79.7, 97.8, 58.0),
    },
    PEC: {
        "BoW": (15.4, 52.9, 86.7, 27.4),
        "HLSTM": (22.2, 63.0, 94.8, 35.2),
        "DIM": (39.3, 74.6, 97.3, 50.5),
        "Bi-encoder": (42.3, 79.2, 98.1, 54.4),
        "Poly-encoder": (43.0, 79.8, 98.2, 55.2),
        "CoBERT": (45.1, 80.5, 98.3, 56.7),
    },
}
_NOT_PRETRAINED = ("BoW", "HLSTM", "DIM")


def _baselines() -> list[Published]:
    return [
        Published(
            RANKING,
            f"{corpus}: {system}",
            name,
            value,
            f"{_PEC} 5",
            _WITHOUT_BERT if system in _NOT_PRETRAINED else _BERT,
            f"{SPC}: {system}" if corpus == PEC else "",
        )
        for corpus, systems in _TABLE_5.items()
        for system, values in systems.items()
        for name, value in zip(_NAMES, values, strict=True)
    ]


TEST_DOMAINS = ("happy", "offmychest", PEC)
_TABLE_6 = {"happy": (36.2, 41.2, 40.5), "offmychest": (28.8, 47.0, 38.4), PEC: (37.0, 47.5, 45.1)}


def _transfer() -> list[Published]:
    return [
        Published(TRANSFER, f"{test}: CoBERT trained on {train}", "R@1", value, f"{_PEC} 6", _BERT)
        for train, values in _TABLE_6.items()
        for test, value in zip(TEST_DOMAINS, values, strict=True)
    ]


_TABLE_7 = {
    "DIM": (40.3, 51.6, 10.36, 0.79),
    "Bi-encoder": (42.6, 55.2, 1.00, 1.00),
    "Poly-encoder": (43.3, 55.7, 1.33, 1.84),
    "BERT+MemNet": (42.3, 53.8, 0.87, 0.89),
    "BERT+DAM": (45.0, 56.9, 14.26, 1.57),
    "BERT+DIM": (46.1, 57.7, 18.36, 1.78),
    "CoBERT": (46.2, 57.9, 2.00, 1.14),
    "CoBERT − hop-1": (44.0, 56.2, 1.65, 1.11),
    "CoBERT − hop-2": (45.5, 57.1, 1.76, 1.11),
    "CoBERT + hop-3": (46.0, 57.6, 2.70, 1.13),
    "CoBERT, mean for max": (44.1, 56.3, 2.12, 1.13),
    "CoBERT, max and mean": (46.1, 57.8, 2.71, 1.15),
}
_COLUMNS = ("R@1", "MRR", "time_ratio", "memory_ratio")


def _ablations() -> list[Published]:
    return [
        Published(
            RANKING,
            f"PEC, validation: {system}",
            name,
            value,
            f"{_PEC} 7",
            _COST if name.endswith("_ratio") else _VALID,
            f"{SPC}: {system}",
        )
        for system, values in _TABLE_7.items()
        for name, value in zip(_COLUMNS, values, strict=True)
    ]


_TABLE_8 = {
    0: (40.4, 1.00, 1.00),
    1: (42.0, 1.34, 1.05),
    2: (42.8, 1.38, 1.06),
    5: (45.1, 1.55, 1.19),
    10: (46.2, 1.90, 1.51),
    20: (47.1, 2.96, 2.29),
}


def _sentences() -> list[Published]:
    said = "CoBERT on BERT base, valid; another corpus (Reddit)"
    cost = "CoBERT on BERT base; inference on a V100, against no persona"
    return [
        Published(
            PERSONA_SENTENCES,
            f"PEC, validation: {sentences(count)}",
            name,
            value,
            f"{_PEC} 8",
            cost if name.endswith("_ratio") else said,
            sentences(count),
        )
        for count, values in _TABLE_8.items()
        for name, value in zip(("R@1", "time_ratio", "memory_ratio"), values, strict=True)
    ]


def sentences(count: int) -> str:
    """A row's name in the table of persona sentences."""
    return f"{count} sentence{'' if count == 1 else 's'}"


def _gains() -> list[Published]:
    said = "CoBERT on BERT base, valid; 150,000 conversations to learn from; 10 sentences against none"
    rows = ((PEC, "CASUAL", 3.77), (PEC, PEC, 6.32), ("CASUAL", "CASUAL", 3.44), ("CASUAL", PEC, 3.31))
    return [
        Published(
            SWAPPED_SHARE,
            f"{test}: trained on {train} alone",
            "persona_gain",
            value,
            "Zhong et al. 2020, §6",
            said,
        )
        for test, train, value in rows
    ]


FIGURES: tuple[Published, ...] = (
    *_empathetic(),
    *_baselines(),
    *_ablations(),
    *_transfer(),
    *_sentences(),
    *_gains(),
)
"""In the order of the papers."""

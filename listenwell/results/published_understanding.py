"""Published numbers of classifiers: emotions, intents, acts and mechanisms."""

_COMAE = "Zheng et al. 2021, Table 1"
_MEED2, _MEED2_TABLE = "Xie & Pu 2021, §3.2", "Xie & Pu 2021, Table 4"
_QUOTED = "second-hand, not checked against the paper"
_ROBERTA = "RoBERTa base, 5 times our encoder; its authors' own split"

_SUBTITLES = "test; pre-trained on film subtitles; the labels of its own classifier"

_SITUATION, _DIALOGUE, _ACT = "situation emotion", "dialogue emotion", "dialogue act"

FIGURES: tuple[tuple[str, str, str, float, str, str], ...] = (
    (_SITUATION, "DistilBERT", "accuracy", 53.4, _QUOTED, "test"),
    (_SITUATION, "DistilBERT", "top_5_accuracy", 86.1, _QUOTED, "test"),
    (_DIALOGUE, "MIME", "accuracy", 34.88, _QUOTED, "test; with its generator, 300 wide"),
    (_DIALOGUE, "CASE", "accuracy", 40.2, _QUOTED, "test; with its generator and common-sense knowledge"),
    (_DIALOGUE, "E-CORE", "accuracy", 42.6, _QUOTED, "test; with its generator"),
    (_DIALOGUE, "BERT, the proposal's follow-up", "accuracy", 35.0, _QUOTED, "BERT; 32 emotions"),
    (
        _DIALOGUE,
        "BERT, the proposal's follow-up",
        "group_accuracy",
        46.6,
        _QUOTED,
        "BERT; trained on the 16 groups",
    ),
    (
        "utterance intent",
        "MEED2's RoBERTa",
        "accuracy",
        65.88,
        _MEED2,
        "test of the same files; RoBERTa base",
    ),
    (
        "response intent",
        "MEED2",
        "weighted_precision",
        26.60,
        _MEED2_TABLE,
        _SUBTITLES,
    ),
    (
        "response intent",
        "MEED2",
        "weighted_recall",
        35.30,
        _MEED2_TABLE,
        _SUBTITLES,
    ),
    ("response intent", "MEED2", "weighted_f1", 28.64, _MEED2_TABLE, _SUBTITLES),
    ("emotional reaction", "CoMAE", "accuracy", 81.2, _COMAE, _ROBERTA),
    ("emotional reaction", "CoMAE", "macro_f1", 76.9, _COMAE, _ROBERTA),
    ("interpretation", "CoMAE", "accuracy", 85.7, _COMAE, _ROBERTA),
    ("interpretation", "CoMAE", "macro_f1", 85.7, _COMAE, _ROBERTA),
    ("exploration", "CoMAE", "accuracy", 96.4, _COMAE, _ROBERTA),
    ("exploration", "CoMAE", "macro_f1", 92.5, _COMAE, _ROBERTA),
    (_ACT, "CoMAE", "accuracy", 92.0, _COMAE, _ROBERTA),
    (_ACT, "CoMAE", "macro_f1", 87.8, _COMAE, _ROBERTA),
    ("expressed emotion", "CoMAE", "accuracy", 60.5, _COMAE, _ROBERTA),
    ("expressed emotion", "CoMAE", "macro_f1", 60.4, _COMAE, _ROBERTA),
)
"""Question, who, metric, value, source, conditions."""

"""Every metric that results hold: its name in result.json, its heading, its unit, how it is rounded.

Names are fixed: a result written today must find its column tomorrow. Standard library only.
"""

from dataclasses import dataclass, replace

PERCENT, COSINE, COMPOUND, TOKENS, PERPLEXITY, BITS = (
    "percent",
    "cosine, −1 to 1",
    "compound, −1 to 1",
    "words and marks",
    "perplexity",
    "bits",
)
POINTS = "percent points"
LEVEL = "level, 0 to 2"
SAMPLE = 500
"""Variety falls as a set grows, so it is also measured on sets of this one size."""


@dataclass(frozen=True)
class Metric:
    """What a figure is called, what it is measured in, and which way is better."""

    name: str
    label: str
    unit: str
    group: str
    """The table it stands in: likeness, variety, manner, perplexity, …."""
    decimals: int = 2
    better: str = "higher"
    """"higher", "lower", or "" where neither is."""
    note: str = ""
    """What a reader must know beside the label."""

    def show(self, value: float | None) -> str:
        """The figure as tables print it; a dash where it was not measured."""
        if value is None:
            return "–"
        return f"{value:.{self.decimals}f}".replace("-", "−")


def _reading() -> list[Metric]:
    """Metrics of who tells a fitting reply from one that is nearly right."""
    kinds = {
        "again": "what was said earlier in the talk",
        "other": "what a person said to somebody else",
        "elsewhere": "what the generator said to somebody else",
        "mistaken": "what the generator says to the opposite feeling",
        "forgot": "what the generator says to the last turn alone",
    }
    every = Metric(
        "pair_errors", "all", PERCENT, "reading", better="lower", note="the wrong one of two replies is taken"
    )
    return [
        every,
        *(
            Metric(f"pair_errors {kind}", kind, PERCENT, "reading", better="lower", note=f"it is {what}")
            for kind, what in kinds.items()
        ),
    ]


def _ratings() -> list[Metric]:
    """Metrics of what raters say of replies that they read blind."""
    scales = ("empathy", "relevance", "fluency", "overall")
    beside = "than the person's reply to the same context"
    return [
        *(Metric(f"rated_{scale}", scale, "rating, 1 to 5", "ratings") for scale in scales),
        Metric("preferred", "preferred", PERCENT, "ratings", note=f"rated higher overall {beside}"),
        Metric(
            "level", "level", PERCENT, "ratings", better="", note=f"rated no higher and no lower {beside}"
        ),
    ]


def _judges() -> list[Metric]:
    """Metrics of whether judges of replies say what raters say."""
    return [
        Metric(
            "rater_agreement",
            "agreement",
            "correlation, −1 to 1",
            "judges",
            note="of a judge's scores with the raters', replies to the same context compared",
        ),
        Metric(
            "chosen_overall",
            "chosen, overall",
            "rating, 1 to 5",
            "judges",
            note="how the raters liked the reply that it would choose alone",
        ),
    ]


def _planning() -> list[Metric]:
    """Metrics of what a generator means to do before it speaks (CoMAE's Table 4)."""
    share = "in how many of the replies that is so"
    after, gold = "planning", "planning_gold"
    parts = [
        Metric(f"{short}_{kind}", f"{short.upper()} {label}", PERCENT, "planning_mechanisms")
        for short in ("er", "ip", "ex")
        for kind, label in (("accuracy", "accuracy"), ("f1", "macro F1"))
    ]
    return [
        Metric("cm_exact", "CM", PERCENT, after, note="all three mechanisms of the person's reply foretold"),
        Metric(
            "da_first", "DA", PERCENT, after, note="the act foretold, where no mechanisms stand before it"
        ),
        Metric("da_share", "DA: share", PERCENT, after, better="", note=share),
        Metric(
            "da_hits_1_after", "DA: Hits@1", PERCENT, after, note="where the factor before it was foretold"
        ),
        Metric("da_hits_3_after", "DA: Hits@3", PERCENT, after, note="likewise, among the three likeliest"),
        Metric("em_share", "EM: share", PERCENT, after, better="", note=share),
        Metric("em_hits_1_after", "EM: Hits@1", PERCENT, after),
        Metric("em_hits_3_after", "EM: Hits@3", PERCENT, after),
        Metric("da_hits_1", "DA Hits@1", PERCENT, gold),
        Metric("da_hits_3", "DA Hits@3", PERCENT, gold),
        Metric("em_hits_1", "EM Hits@1", PERCENT, gold),
        Metric("em_hits_3", "EM Hits@3", PERCENT, gold),
        *parts,
        Metric("emotion_hits_1", "user emotion Hits@1", PERCENT, "planning_emotion"),
        Metric("emotion_hits_5", "user emotion Hits@5", PERCENT, "planning_emotion"),
    ]


METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric("bleu_1", "BLEU-1", PERCENT, "likeness", note="corpus BLEU, cumulative, no smoothing"),
        Metric("bleu_2", "BLEU-2", PERCENT, "likeness"),
        Metric("bleu_3", "BLEU-3", PERCENT, "likeness"),
        Metric("bleu_4", "BLEU-4", PERCENT, "likeness"),
        Metric("bleu_average", "BLEU average", PERCENT, "likeness", note="the mean of BLEU-1 to BLEU-4"),
        Metric("sacre_bleu", "sacreBLEU", PERCENT, "likeness", note="on the texts as they are, with case"),
        Metric("rouge_l", "ROUGE-L", PERCENT, "likeness", note="mean F1"),
        Metric("meteor", "METEOR", PERCENT, "likeness", note="exact words and stems, no synonyms"),
        Metric(
            "greedy_matching",
            "greedy matching",
            COSINE,
            "likeness",
            3,
            note="of contextual word vectors; the encoder is named in the conditions",
        ),
        Metric("sentence_similarity", "similarity", COSINE, "likeness", 3, note="of sentence vectors"),
        Metric("distinct_1", "D1", PERCENT, "variety", note="distinct words in percent of all words"),
        Metric("distinct_2", "D2", PERCENT, "variety", note="distinct pairs of words, likewise"),
        Metric("distinct_replies", "distinct replies", PERCENT, "variety"),
        Metric(
            "distinct_1_of_500",
            f"D1 of {SAMPLE}",
            PERCENT,
            "variety",
            note=f"the mean over sets of {SAMPLE} replies",
        ),
        Metric("distinct_2_of_500", f"D2 of {SAMPLE}", PERCENT, "variety"),
        Metric("distinct_replies_of_500", f"distinct replies of {SAMPLE}", PERCENT, "variety"),
        Metric(
            "stock_phrases",
            "stock phrases",
            PERCENT,
            "variety",
            better="lower",
            note="replies that hold at least one of a fixed list",
        ),
        Metric("sorry_to_hear", "“sorry to hear”", PERCENT, "variety", better="lower"),
        Metric("length", "length", TOKENS, "manner", better=""),
        Metric("vader", "VADER", COMPOUND, "manner", 3, better="", note="mean sentiment of the replies"),
        Metric(
            "er_level",
            "ER",
            LEVEL,
            "empathy",
            3,
            note="emotional reaction: EPITOME's level, none 0, weak 1, strong 2, as the annotators read it",
        ),
        Metric("ip_level", "IP", LEVEL, "empathy", 3, note="interpretation, likewise"),
        Metric("ex_level", "EX", LEVEL, "empathy", 3, note="exploration, likewise"),
        Metric(
            "invented_life",
            "invented life",
            PERCENT,
            "empathy",
            better="lower",
            note="replies that claim a life of one's own (“my wife”) which no persona holds",
        ),
        Metric("perplexity_by_token", "PPL a token", PERPLEXITY, "perplexity", better="lower"),
        Metric("perplexity_by_word", "PPL a word", PERPLEXITY, "perplexity", better="lower"),
        Metric("bits_per_byte", "bits a byte", BITS, "perplexity", 3, better="lower"),
        Metric("valid_perplexity_by_token", "valid PPL a token", PERPLEXITY, "perplexity", better="lower"),
        *_planning(),
        Metric("cm_realized", "CM", PERCENT, "realization", note="all three mechanisms as planned"),
        Metric("da_realized", "DA", PERCENT, "realization", note="the dialogue act as planned"),
        Metric("em_realized", "EM", PERCENT, "realization", note="the expressed emotion as planned"),
        Metric("all_realized", "all", PERCENT, "realization", note="the whole plan"),
        Metric("accuracy", "accuracy", PERCENT, "understanding"),
        Metric(
            "top_5_accuracy", "top 5", PERCENT, "understanding", note="the truth is among the five likeliest"
        ),
        Metric(
            "group_accuracy", "16 groups", PERCENT, "understanding", note="right among 16 groups of emotions"
        ),
        Metric("macro_f1", "macro F1", PERCENT, "understanding"),
        Metric("micro_f1", "micro F1", PERCENT, "detail"),
        Metric("exact_match", "exact set", PERCENT, "detail", note="all of a text's labels and no other"),
        Metric("weighted_precision", "weighted P", PERCENT, "detail"),
        Metric("weighted_recall", "weighted R", PERCENT, "detail"),
        Metric("weighted_f1", "weighted F1", PERCENT, "understanding"),
        Metric(
            "adjusted_weighted_f1",
            "adjusted F1",
            PERCENT,
            "understanding",
            note="weighted F1 of labels chosen against their frequency, by a share fitted on valid",
        ),
        Metric("adjusted_weighted_precision", "adjusted P", PERCENT, "detail"),
        Metric("adjusted_weighted_recall", "adjusted R", PERCENT, "detail"),
        Metric("adjusted_accuracy", "adjusted accuracy", PERCENT, "other"),
        Metric("adjusted_share", "share of the log frequency", "τ", "other", better=""),
        Metric("level_accuracy", "3 levels", PERCENT, "detail", note="accuracy of no, weak, strong"),
        Metric("level_macro_f1", "3 levels, macro F1", PERCENT, "detail"),
        Metric("rationale_f1", "rationale F1", PERCENT, "detail", note="of word pieces"),
        Metric(
            "unseen_accuracy",
            "unseen",
            PERCENT,
            "detail",
            note="accuracy on texts that are not in the training data",
        ),
        Metric(
            "proper_act_accuracy",
            "8 acts",
            PERCENT,
            "detail",
            note="accuracy on texts whose act is not others",
        ),
        Metric("unseen", "unseen", "texts", "other", 0, ""),
        Metric("proper_acts", "of the 8 acts", "texts", "other", 0, ""),
        Metric(
            "ece",
            "ECE",
            PERCENT,
            "trust",
            better="lower",
            note="expected calibration error, 15 bins",
        ),
        Metric(
            "ece_uncalibrated",
            "ECE before",
            PERCENT,
            "trust",
            better="lower",
            note="without the fitted temperature",
        ),
        Metric("R@1", "R@1", PERCENT, "ranking", note="the true reply is the first among 100"),
        Metric("R@10", "R@10", PERCENT, "ranking", note="it is among the first ten"),
        Metric("R@50", "R@50", PERCENT, "ranking"),
        Metric("MRR", "MRR", PERCENT, "ranking", note="mean reciprocal rank of the true reply"),
        Metric(
            "persona_gain",
            "persona gain",
            POINTS,
            "ranking",
            note="R@1 with persona sentences less R@1 without",
        ),
        Metric("gain", "gain", POINTS, "gain", note="R@1 of the first row less R@1 of the second"),
        Metric("gain_low", "from", POINTS, "gain", note="lower end of the gain's 95 % interval"),
        Metric("gain_high", "to", POINTS, "gain", note="its upper end"),
        Metric("gain_p", "p", "p", "gain", 4, better="lower", note="two-sided, by the same draws"),
        Metric(
            "R@1 unshuffled",
            "R@1, neighbours",
            PERCENT,
            "ranking_hard",
            note="the 100 are neighbours in the split, among them replies of the same dialogue",
        ),
        Metric("R@10 unshuffled", "R@10, neighbours", PERCENT, "ranking_hard"),
        Metric("R@50 unshuffled", "R@50, neighbours", PERCENT, "ranking_hard"),
        Metric("MRR unshuffled", "MRR, neighbours", PERCENT, "ranking_hard"),
        *_reading(),
        *_ratings(),
        *_judges(),
        Metric(
            "time_ratio",
            "time",
            "×",
            "ranking_cost",
            better="lower",
            note="of ranking, in multiples of what the conditions name",
        ),
        Metric("memory_ratio", "memory", "×", "ranking_cost", better="lower", note="likewise"),
        Metric("macro_precision", "macro P", PERCENT, "other"),
        Metric("macro_recall", "macro R", PERCENT, "other"),
        Metric("nll", "negative log-likelihood", "nats", "other", 0, "lower", "summed over the split"),
        Metric("tokens", "tokens", "tokenizer's", "other", 0, "", "end marks included"),
        Metric("words", "words", "between white space", "other", 0, ""),
        Metric("bytes", "bytes", "UTF-8", "other", 0, ""),
        Metric("train_seconds", "training", "s", "other", 0, "", "compilation included"),
        Metric("train_tokens_per_second", "training", "tokens/s", "other", 0, "", "compilation included"),
    )
}


REPLY_GROUPS = ("likeness", "variety", "manner")
"""The groups of what is measured on replies; "empathy" needs what they answer too."""


def metric(name: str, unit: str = "") -> Metric:
    """A metric by its name; "R@1 on PEC" is R@1 measured elsewhere.

    One that is unknown here is shown as it is, in the unit its result gives.
    """
    if name in METRICS:
        return METRICS[name]
    known, elsewhere, place = name.partition(" on ")
    if elsewhere and known in METRICS:
        base = METRICS[known]
        return replace(base, name=name, label=f"{base.label} on {place}", note="")
    return Metric(name, name.replace("_", " "), unit, "other", better="")


def units(names: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """The units of some metrics, as a result holds them."""
    return tuple((name, unit) for name in names if (unit := metric(name).unit))

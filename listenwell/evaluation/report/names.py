"""How pages call the systems and tasks of result files, whose own names never change."""

from dataclasses import dataclass

_FEATURES = {
    "liking": "reward model",
    "liking_unvoiced": "reward model, base prompt",
    "liked": "reward model",
    "reader": "pairwise cross-encoder",
    "realized": "plan adherence",
    "prior": "unconditional likelihood",
    "interprets": "interpretation",
    "explores": "exploration",
    "invented": "unsupported disclosure",
    "stock": "stock phrases",
    "voice": "soft prompt",
    "choose": "reranking",
    "understand": "annotators",
    "plan": "planning",
}
"""Pipeline stages and reranking features of older result files."""
_SYSTEMS = {
    "human": "people",
    "human, the ablations' contexts": "people, contexts of the ablations",
    "vanilla": "fine-tuned, no plan",
    "all judges together": "all features together",
    "any reply of ours": "mean of the candidates",
    "the reply that raters like best": "best candidate by the ratings (upper bound)",
    "CoBERT, so fast and together": "CoBERT, joint, learning rate of the head × 50",
    "CoBERT, weights fifty times as fast": "CoBERT, learning rate of the head × 50",
    "all: crisis": "all sentences",
    "held out: crisis": "held-out sentences",
    "tuned on: crisis": "sentences tuned on",
}
_PARTS = (
    ("planned: speaker", "planned generator"),
    ("planned speaker", "planned generator"),
    (", unvoiced", ", no soft prompt"),
    ("prompted (smollm2-135m-instruct)", "SmolLM2-135M-Instruct, prompted"),
    ("bag_emotion", "fastText classifier"),
    (": reader", ": pairwise cross-encoder"),
    ("comae: ", "CoMAE "),
    (", factors summed over", ", marginal over factors"),
    (", together", ", joint"),
)


def display_name(system: str) -> str:
    """A system's name as pages and figures show it."""
    if system in _SYSTEMS:
        return _SYSTEMS[system]
    kind, separator, feature = system.partition(": ")
    if kind == "judge" and separator:
        return feature_names(feature)
    for old, new in _PARTS:
        system = system.replace(old, new)
    whole, separator, features = system.partition(" without ")
    return f"{whole} without {feature_names(features)}" if separator else system


def feature_names(features: str) -> str:
    """The names of switched-off stages or features, separated by commas."""
    return ", ".join(_FEATURES.get(name, name) for name in features.split(", "))


@dataclass(frozen=True)
class Section:
    """A task's part of a page."""

    task: str
    """The task's name in result files."""
    title: str
    intro: str = ""


@dataclass(frozen=True)
class Page:
    """One page of docs/results."""

    slug: str
    title: str
    intro: str
    sections: tuple[Section, ...]


PAGES = (
    Page(
        "replies",
        "Replies",
        "Replies to EmpatheticDialogues' test contexts. Baselines are the released replies of MoEL and MIME, "
        "measured by the same code. One reference is one of many good answers: read overlap together with "
        "diversity and stock phrases.",
        (Section("replies", "Replies"),),
    ),
    Page(
        "ratings",
        "Ratings and reranking features",
        "Language models rated replies blind and in random order; no person has rated them yet.",
        (
            Section("ratings", "Blind ratings of replies"),
            Section("judges", "How far reranking features agree with raters"),
            Section("reading", "Pairwise accuracy on hard negatives"),
        ),
    ),
    Page(
        "perplexity",
        "Perplexity",
        "Perplexity of the reference replies. Numbers compare only in one unit: per token of the model's own "
        "tokenizer (end marks included), per word between white space (papers: of their vocabulary), or per "
        "byte.",
        (
            Section("perplexity", "EmpatheticDialogues"),
            Section("unseen corpora", "Corpora that are not in the training data"),
        ),
    ),
    Page(
        "understanding",
        "Understanding",
        "Emotions, intents, dialogue acts and communication mechanisms predicted by the annotators.",
        (Section("understanding", "Annotators"),),
    ),
    Page(
        "rankers",
        "Rankers",
        "How often a ranker puts the true reply first among 100 candidates. CoBERT's paper was measured on "
        "PEC (Reddit), which cannot be downloaded: its numbers stand beside ours without a difference.",
        (
            Section("ranking", "Ranking the true reply"),
            Section("word by word", "Rankers with word-level matching"),
            Section("transfer", "Transfer between corpora"),
            Section("persona sentences", "Number of persona sentences"),
            Section("swapped share", "Does a persona help more in empathetic conversations?"),
        ),
    ),
    Page(
        "comae",
        "CoMAE",
        "The twelve models of CoMAE (Zheng et al. 2021) on SmolLM2-135M and EmpatheticDialogues. The paper "
        "used GPT-2 on Reddit, so its numbers stand beside ours without a difference.",
        (
            Section("family", "Replies with gold and with predicted factors (Table 2)"),
            Section("comae", "Training runs"),
        ),
    ),
    Page(
        "factor_prediction",
        "Factor prediction",
        "Predicting the communication factors of the human reply (CoMAE's Table 4).",
        (Section("planning", "Factor prediction"),),
    ),
    Page(
        "plan_adherence",
        "Plan adherence",
        "Replies whose factors, as the annotators predict them, are those of their plan (CoMAE's Table 5).",
        (Section("realization", "Plan adherence"),),
    ),
    Page(
        "ablations",
        "Ablations",
        "The listener without one stage or reranking feature, and CoBERT without one of its parts.",
        (Section("ablations", "Ablations"),),
    ),
    Page(
        "safety",
        "Safety",
        "Crisis detection on our own labelled sentences, and the replies that the filter rejects.",
        (
            Section("safety", "Crisis detection"),
            Section("reply_filter", "Reply filter"),
        ),
    ),
)
"""Every page, in the order of the contents list."""
OTHER = Page("other", "Other results", "Tasks without a page of their own.", ())

"""The listener's place *choose*: several judges, one order.

score = Σ_soft w_j z_j + Σ_merit w_j m_j − Σ_fault w_j f_j, with z_j a judge's score standardized over the
candidates of this reply; the prior's z is taken off. Every judge's own score stays on the candidate: a choice
can be read.

Judges that take time and count little (`config.LATE`) are asked last, and only where they could still change
which candidate comes first: of n standardized scores, two are at most √(2n) apart.
"""

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import TYPE_CHECKING, Protocol

import numpy as np

from listenwell.dialogue import Candidate, Dialogue, Factors
from listenwell.metrics import normalized
from listenwell.reranking.brief import brief
from listenwell.reranking.config import CHOICE, FAULTS, LATE, MERITS, READ, SOFT, ChoiceConfig
from listenwell.reranking.copied import copied
from listenwell.reranking.plan_adherence import read_candidates, realized, shown
from listenwell.reranking.repeated import repeated
from listenwell.reranking.self_disclosure.unsupported import invented
from listenwell.reranking.stock import stock_share
from listenwell.reranking.unfinished import bare, unfinished
from listenwell.serialization import dumps

if TYPE_CHECKING:
    from listenwell.annotators.annotator import Annotator


class Ranker(Protocol):
    """Whoever says how well replies fit, such as `rankers.ranker.Selector`."""

    name: str
    key: str

    def scores(self, dialogue: Dialogue, replies: Sequence[str]) -> np.ndarray:
        """How well each reply fits, the higher the better: (replies,)."""
        ...


Priors = Callable[[Sequence[str]], Sequence[float]]
"""How likely replies are whatever was said: log P(y) by token; see `planned.Speaker.priors`."""


@dataclass
class Choice:
    """Puts candidates in order, the best first.

    A judge without what it needs is passed over: reader, ranker and `realized` where they are not given,
    likelihood, prior and plan where the speaker put no such scores on the candidates.
    """

    config: ChoiceConfig = field(default_factory=ChoiceConfig)
    ranker: Ranker | None = None
    annotator: "Annotator | None" = None
    name: str = "judges"
    priors: Priors | None = None
    """Where given, who is asked for a prior that the candidates do not have yet."""
    want: Factors | None = None
    """What somebody asked for, if anybody did: then `realized` asks for this alone."""
    reader: Ranker | None = None
    """Who reads dialogue and reply together."""

    @classmethod
    def load(
        cls,
        config: ChoiceConfig | None = None,
        annotator: "Annotator | None" = None,
        priors: Priors | None = None,
    ) -> "Choice":
        """With the shipped reader, ranker and annotators, as far as the config asks for them.

        Args:
            config: the weights; the default ones without.
            annotator: one that is loaded already and has the heads of `annotators.replies.REPLY_HEADS`.
            priors: the speaker's, if it has any.
        """
        from listenwell.rankers.ranker import READER, Selector

        config = config or ChoiceConfig()
        reader = Selector.load(READER) if config.weight("reader") else None
        ranker = Selector.load() if config.weight("ranker") else None
        if annotator is None and any(map(config.weight, READ)):
            from listenwell.annotators.annotator import Annotator
            from listenwell.annotators.replies import REPLY_HEADS

            annotator = Annotator.load(heads=REPLY_HEADS)
        return cls(config, ranker, annotator, priors=priors, reader=reader)

    @property
    def key(self) -> str:
        """Names weights and judges: equal keys give equal choices."""
        return sha256(dumps(self.conditions()).encode()).hexdigest()

    def conditions(self) -> dict[str, str]:
        """What moves a choice, for results."""
        weights = {name: self.config.weight(name) for name in self.config.asked()}
        return {
            "judges": ", ".join(f"{name} {weight:g}" for name, weight in weights.items()) or "none",
            "judges of a reply that was steered": f"realized {self.config.steered:g}, by the "
            f"weakest part that was asked for; liked {self.config.steered_liked:g} at most; no merits; "
            f"faults times {self.config.steered_faults:g}; said once more without a voice where realized is "
            f"below {self.config.done:g}",
            "judges left out": ", ".join(self.config.without) or "none",
            "reader": f"{self.reader.name}, key {self.reader.key}" if self.reader else "none",
            "ranker": f"{self.ranker.name}, key {self.ranker.key}" if self.ranker else "none",
            "annotator": f"key {self.annotator.key}" if self.annotator else "none",
        }

    def choose(
        self, dialogue: Dialogue, candidates: Sequence[Candidate], want: Factors | None = None
    ) -> tuple[Candidate, ...]:
        """The candidates with the score of every judge that was asked and their sum, the best first.

        Of candidates with the same words the first is kept; of equally good ones the first stays first.

        Args:
            dialogue: what was said.
            candidates: the replies.
            want: what a reply was asked to do; then it counts more that it does this.
        """
        if _steers(want):
            return replace(self, config=self.config.for_steering(), want=want).choose(dialogue, candidates)
        kept = list({normalized(one.text): one for one in reversed(candidates)}.values())[::-1]
        if not kept:
            return ()
        late = self._late(dialogue, kept)
        judged = self._given(kept, late) | self._read(dialogue, kept) | self._faults(dialogue, kept)
        total = self._total(judged, len(kept))
        while late and (self.config.every or _close(total, sum(map(self.config.weight, late)))):
            judge = next(iter(late))
            judged[judge] = late.pop(judge)()
            total = self._total(judged, len(kept))
        scored = [_with_scores(one, judged, total, place) for place, one in enumerate(kept)]
        return tuple(scored[place] for place in np.argsort(-total, kind="stable"))

    def is_amiss(self, chosen: Sequence[Candidate], want: Factors | None) -> bool:
        """Whether the best of these, put in order by `choose`, most likely does not do what was asked for."""
        return _steers(want) and dict(chosen[0].scores).get("realized", 1.0) < self.config.done

    def _total(self, judged: dict[str, Sequence[float | None]], count: int) -> np.ndarray:
        """The weighted sum of all judges' scores: (candidates,)."""
        total = np.zeros(count)
        for judge, scores in judged.items():
            weight = self.config.weight(judge)
            if judge in FAULTS or judge in MERITS:
                points = weight * np.array([score or 0.0 for score in scores])
                total += points if judge in MERITS else -points
            else:
                total += (-weight if judge == "prior" else weight) * standardized(scores)
        return total

    def _late(
        self, dialogue: Dialogue, candidates: Sequence[Candidate]
    ) -> dict[str, Callable[[], Sequence[float | None]]]:
        """Judges that can wait, in the order of asking them, and how they are asked."""
        texts = [one.text for one in candidates]
        found: dict[str, Callable[[], Sequence[float | None]]] = {}
        if reader := self.reader:
            found["reader"] = lambda: reader.scores(dialogue, texts).tolist()
        if ranker := self.ranker:
            found["ranker"] = lambda: ranker.scores(dialogue, texts).tolist()
        if (priors := self.priors) and not any("prior" in dict(one.scores) for one in candidates):
            found["prior"] = lambda: list(priors(texts))
        return {judge: found[judge] for judge in LATE if judge in found and self.config.weight(judge)}

    def _given(
        self, candidates: Sequence[Candidate], late: Container[str]
    ) -> dict[str, Sequence[float | None]]:
        """For each soft judge whose scores the candidates bring along."""
        given = [dict(one.scores) for one in candidates]
        asked = [judge for judge in SOFT if judge not in late and judge not in READ]
        return {
            judge: [scores.get(judge) for scores in given] for judge in asked if self.config.weight(judge)
        }

    def _read(self, dialogue: Dialogue, candidates: Sequence[Candidate]) -> dict[str, Sequence[float | None]]:
        """For each judge who asks the annotators; all candidates are read once."""
        asked = [judge for judge in READ if self.config.weight(judge)]
        if self.annotator is None or not asked:
            return {}
        readings = read_candidates(self.annotator, dialogue, candidates)
        found: dict[str, Sequence[float | None]] = {}
        for judge in asked:
            mechanism = READ[judge]
            found[judge] = (
                shown(readings, mechanism) if mechanism else realized(readings, candidates, self.want)
            )
        return found

    def _faults(
        self, dialogue: Dialogue, candidates: Sequence[Candidate]
    ) -> dict[str, Sequence[float | None]]:
        """For each judge of faults that was asked, how much of it there is in each candidate."""
        persona = dialogue.persona_of(dialogue.listener)
        lines = persona.lines if persona else ()
        judges: dict[str, Callable[[str], float]] = {
            "stock": stock_share,
            "repeated": lambda text: repeated(text, dialogue),
            "copied": lambda text: copied(text, lines),
            "invented": lambda text: float(len(invented(text, lines))),
            "unfinished": lambda text: float(unfinished(text)),
            "bare": lambda text: float(bare(text)),
            "brief": brief,
        }
        asked = [judge for judge in FAULTS if self.config.weight(judge)]
        return {judge: [judges[judge](one.text) for one in candidates] for judge in asked}


def standardized(scores: Sequence[float | None]) -> np.ndarray:
    """Scores with mean 0 and deviation 1; one that is missing, or not finite, stands at the mean.

    All 0 where they do not differ: a judge who sees no difference has no say.
    """
    values = np.array([np.nan if score is None else score for score in scores], np.float64)
    known = np.isfinite(values)
    found = np.zeros(len(values))
    if known.any():
        spread = values[known].std()
        # Scores of one text in batches of different shapes differ in the last digits.
        if spread > 1e-6 * max(1.0, float(np.abs(values[known]).max())):
            found[known] = (values[known] - values[known].mean()) / spread
    return found


def _steers(want: Factors | None) -> bool:
    """Whether anything was asked of the reply; the user's emotion is not the reply's to realize."""
    return want is not None and any(part is not None for part in (want.mechanisms, want.act, want.tone))


def _close(total: np.ndarray, weight: float) -> bool:
    """Whether soft judges of this weight together could put another candidate first."""
    if len(total) < 2:
        return False
    second, first = np.sort(total)[-2:]
    return bool(first - second < weight * np.sqrt(2 * len(total)))


def _with_scores(
    one: Candidate, judged: dict[str, Sequence[float | None]], total: np.ndarray, place: int
) -> Candidate:
    own = {judge: scores[place] for judge, scores in judged.items()} | {CHOICE: float(total[place])}
    new = {judge: round(score, 4) for judge, score in own.items() if score is not None}
    return replace(one, scores=tuple((dict(one.scores) | new).items()))

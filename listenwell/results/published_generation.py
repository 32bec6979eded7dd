"""Published numbers of CoMAE and its family (Zheng et al. 2021): Tables 2, 4 and 5.

They were measured on PEC's two parts of Reddit with GPT-2 (117M) and RoBERTa classifiers: ours stand beside
them without a gap.
"""

from listenwell.results.published_number import Published

FAMILY, SWEEP, PLANNING, REALIZATION = "family", "comae", "planning", "realization"
"""The ledger's tables of generators that plan: of the family, replies and perplexity, and the study's rows."""
DOMAINS = ("Reddit happy", "Reddit offmychest")
_PAPER = "Zheng et al. 2021, Table"
_GOLD = (
    "test; another corpus (Reddit); GPT-2 117M, a token of its BPE; gold factors; top-p 0.9, temperature 0.7"
)
_GREEDY = f"{_GOLD}; printed in percent, here as a cosine; its word vectors are not ours"
_PREDICTED = (
    "test; another corpus (Reddit); GPT-2 117M; where both models of the pair foretell the factor before"
)
_REALIZED = "test; another corpus (Reddit); GPT-2 117M; the model's own factors, sampled; read by RoBERTa"

_TABLE_2 = {
    "Vanilla": ((18.82, 5.95, 15.00, 66.09), (22.11, 5.66, 13.75, 68.40)),
    "+CM": ((18.21, 6.67, 17.64, 66.95), (21.44, 6.65, 17.62, 69.68)),
    "+DA": ((18.01, 7.18, 18.09, 67.35), (21.34, 7.11, 17.44, 69.67)),
    "+EM": ((17.88, 7.51, 18.27, 67.78), (21.26, 6.75, 17.40, 69.63)),
    "CM ‖ DA": ((17.83, 7.76, 18.85, 67.78), (21.07, 7.56, 18.41, 70.16)),
    "CM ‖ EM": ((17.57, 8.17, 19.58, 68.25), (20.83, 7.78, 18.97, 70.34)),
    "DA ‖ EM": ((17.38, 8.37, 19.91, 68.59), (20.85, 7.48, 18.49, 70.19)),
    "CM ‖ DA ‖ EM": ((17.26, 9.21, 20.75, 68.86), (20.63, 8.23, 19.32, 70.54)),
    "CM → DA": ((17.69, 7.95, 18.96, 67.79), (20.87, 7.70, 18.58, 70.33)),
    "CM → EM": ((17.45, 8.04, 19.49, 68.08), (20.72, 7.71, 18.63, 70.31)),
    "DA → EM": ((17.28, 8.73, 20.09, 68.59), (20.68, 7.89, 18.66, 70.25)),
    "CM → DA → EM": ((17.02, 9.44, 20.76, 68.92), (20.35, 8.35, 19.54, 70.68)),
}
"""PPL, B-2, R-L and greedy matching; happy, then offmychest."""
_SWEEP_ROWS = {
    "CM ‖ DA": "CM ‖ DA side by side",
    "CM ‖ EM": "CM ‖ EM side by side",
    "DA ‖ EM": "DA ‖ EM side by side (EmpTransfo)",
    "CM ‖ DA ‖ EM": "CM ‖ DA ‖ EM side by side",
}
"""What the study calls a row, where it is not the paper's name."""
MEMBERS = tuple(_TABLE_2)
"""The family: what the rows are called."""
_TABLE_4 = {
    "CM ‖ DA": ((69.5, 68.9, 46.1, 81.5), (48.4, 45.2, 41.3, 67.9)),
    "CM → DA": ((70.2, 68.9, 49.5, 85.1), (49.2, 45.2, 45.9, 75.1)),
    "CM ‖ EM": ((69.5, 68.9, 42.3, 80.1), (45.7, 42.9, 47.2, 74.2)),
    "CM → EM": ((70.4, 68.9, 42.8, 82.7), (46.1, 42.9, 50.3, 77.2)),
    "DA ‖ EM": ((40.1, 34.6, 50.3, 86.5), (35.0, 30.7, 60.5, 84.8)),
    "DA → EM": ((40.0, 34.6, 53.5, 89.7), (34.9, 30.7, 70.2, 88.3)),
}
"""Accuracy of X, the share in which both models are right about it, Hits@1 and Hits@3 of Y."""
_TABLE_5 = {
    "CM ‖ DA": ((69.6, 76.2, None), (61.8, 65.6, None)),
    "CM → DA": ((79.3, 83.6, None), (71.4, 74.8, None)),
    "CM ‖ EM": ((73.8, None, 78.0), (65.4, None, 66.1)),
    "CM → EM": ((76.6, None, 82.4), (71.1, None, 74.6)),
    "DA ‖ EM": ((None, 77.5, 75.0), (None, 63.7, 58.3)),
    "DA → EM": ((None, 87.3, 85.7), (None, 79.5, 75.1)),
    "CM ‖ DA ‖ EM": ((68.5, 70.3, 71.9), (59.0, 60.8, 58.9)),
    "CM → DA → EM": ((76.7, 83.7, 81.2), (70.7, 76.2, 72.6)),
}
"""Realization of CM, DA and EM."""


def _family() -> list[Published]:
    names = ("perplexity_by_token", "bleu_2", "rouge_l", "greedy_matching")
    found = []
    for member, domains in _TABLE_2.items():
        ours = f"{member}, {'no' if member == 'Vanilla' else 'gold'} factors"
        for domain, values in zip(DOMAINS, domains, strict=True):
            for name, value in zip(names, values, strict=True):
                is_greedy = name == "greedy_matching"
                said, shown = (_GREEDY, round(value / 100, 4)) if is_greedy else (_GOLD, value)
                found.append(Published(FAMILY, f"{domain}: {member}", name, shown, f"{_PAPER} 2", said, ours))
                if name == "perplexity_by_token":
                    row = _SWEEP_ROWS.get(member, member)
                    found.append(
                        Published(SWEEP, f"{domain}: {member}", name, shown, f"{_PAPER} 2", said, row)
                    )
    return found


def _planning() -> list[Published]:
    found = []
    for member, domains in _TABLE_4.items():
        first, second = member.split()[0], member.split()[-1].lower()
        names = (
            "cm_exact" if first == "CM" else "da_first",
            f"{second}_share",
            f"{second}_hits_1_after",
            f"{second}_hits_3_after",
        )
        for domain, values in zip(DOMAINS, domains, strict=True):
            found += [
                Published(PLANNING, f"{domain}: {member}", name, value, f"{_PAPER} 4", _PREDICTED, member)
                for name, value in zip(names, values, strict=True)
            ]
    return found


def _realization() -> list[Published]:
    names = ("cm_realized", "da_realized", "em_realized")
    return [
        Published(
            REALIZATION,
            f"{domain}: {member}",
            name,
            value,
            f"{_PAPER} 5",
            _REALIZED,
            f"{member}, predicted factors",
        )
        for member, domains in _TABLE_5.items()
        for domain, values in zip(DOMAINS, domains, strict=True)
        for name, value in zip(names, values, strict=True)
        if value is not None
    ]


FIGURES: tuple[Published, ...] = (*_family(), *_planning(), *_realization())
"""Every number, in the order of the paper."""

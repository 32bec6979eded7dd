import json
from pathlib import Path

import pytest

from listenwell.safety.normalizer import normalize
from listenwell.safety.patterns.base import patterns, read
from listenwell.safety.patterns.needs import needs

PARTS = {"kin": frozenset(("father", "aunt")), "gap": frozenset[str]()}
SENTENCES = Path(__file__).parent / "sentences.jsonl"


@pytest.mark.parametrize(
    ("expression", "wanted"),
    [
        ("die in my sleep", {"die in my sleep"}),
        ("(?:kill|hang) myself(?! laughing)", {" myself"}),
        ("(?:kill|hang)(?: myself)?", {"kill", "hang"}),
        ("(?:kill|hang|)", set()),
        ("(?:kill|ha(?:ng|rm)|drown(?:ing)?)", {"kill", "ha", "drown"}),
        ("kills?", {"kill"}),
        ("a?", set()),
        ("ab{0,2}", {"a"}),
        ("my <kin> so", {"father", "aunt"}),
        ("my <kin>? (?:<gap>)?hits", {"hits"}),
        (r"\w+[abc]cut(?<=myself)", {"cut"}),
        ("kill|hang", {"kill", "hang"}),
        ("<nobody>", set()),
        ("(?i)kill", set()),
        ("(?:kill", set()),
        ("kill)", set()),
    ],
)
def test_what_an_expression_needs_worked_by_hand(expression, wanted):
    assert needs(expression, PARTS) == wanted


def test_a_pattern_is_compiled_for_a_text_that_may_say_it():
    (one,) = read("[strong]\n(?:kill|hang) myself\n", "suicide")
    assert not list(one.matches(" i could kill him . ")) and "regex" not in vars(one)
    assert [found[0] for found in one.matches(" i kill myself . ")] == [" kill myself"]


def test_no_match_is_missed():
    """Every pattern, on every sentence: the same with its needs as without."""
    texts = [normalize(json.loads(line)["text"]).text for line in SENTENCES.open(encoding="utf-8")]
    found = 0
    for pattern in patterns():
        for text in texts:
            places = [match.span() for match in pattern.regex.finditer(text)]
            assert [match.span() for match in pattern.matches(text)] == places
            found += len(places)
    assert found > 200 and all(pattern.needs for pattern in patterns())

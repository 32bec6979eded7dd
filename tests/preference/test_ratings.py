"""Blind sheets, and what raters said of them."""

import json
import random

import pytest

from listenwell.corpora import CORPORA
from listenwell.corpora.sampling import Sampling
from listenwell.dialogue import Candidate, Dialogue, Example, Factors, Turn
from listenwell.errors import InputError
from listenwell.preference.rating_sheets import (
    KEY,
    PERSON,
    Key,
    Offer,
    candidate_offers,
    candidates_of,
    write_sheets,
)
from listenwell.preference.ratings import HEADER, Rating, read_ratings
from listenwell.preference.score import results_of, system_scores
from listenwell.results.store import read_result
from tests.preference.helpers import call

PLAN = Factors("sad", ("exploration",), "questioning", "caring")
ABOUT = Key("empathetic_dialogues", "test", "", ("ours: replies.jsonl, sha256 abc",), ())


def example(number):
    turns = (
        Turn("speaker", f"I lost dog {number}. <b>A. Oh</b>"),
        Turn("listener", "When?"),
        Turn("speaker", "Now."),
    )
    return Example(Dialogue(turns, id=f"hit:{number}"), Turn("listener", f"how sad {number}"))


def offered(count=6):
    return [
        (
            f"hit:{number}#3",
            example(number),
            {
                PERSON: Offer(f"how sad {number}"),
                "ours": Offer(f"Oh no, {number}!", PLAN),
                "same": Offer(f"how sad {number}"),
            },
        )
        for number in range(count)
    ]


def write_csv(folder, sheet, lines, extra=""):
    (folder / f"sheet-{sheet:02d}{extra}.csv").write_text("\n".join([",".join(HEADER), *lines]) + "\n")


@pytest.fixture
def folder(tmp_path):
    write_sheets(tmp_path / "rated", offered(), Sampling(5, 1), 2, ABOUT)
    return tmp_path / "rated"


def rate(folder, key, scores, extra=""):
    """Ratings of all sheets: `scores` gives those of whoever said a reply."""
    for sheet in {entry.sheet for entry in key.entries}:
        lines = [
            f"{entry.number},{shown.letter},{','.join(map(str, scores(entry, shown)))}"
            for entry in key.entries
            if entry.sheet == sheet
            for shown in entry.replies
        ]
        write_csv(folder, sheet, lines, extra)


def test_sheets_show_replies_without_names_and_the_key_has_them(folder):
    key = Key.from_json((folder / KEY).read_bytes())
    assert [entry.sheet for entry in key.entries] == [1, 1, 2, 2, 3] and key.sample.startswith("5 of 6")
    page = (folder / "sheet-01.md").read_text()
    assert "ours" not in page and PERSON not in page and "1 to 5" in page and ",".join(HEADER) in page
    assert "Person: I lost dog" in page and "Listener: When?" in page and "<b>" not in page
    for entry in key.entries:
        number = entry.id[4]
        whose = {shown.text: (set(shown.who), shown.plan) for shown in entry.replies}
        # Who says the same stands once.
        assert whose == {
            f"Oh no, {number}!": ({"ours"}, PLAN),
            f"how sad {number}": ({PERSON, "same"}, None),
        }
    orders = {tuple(shown.who[0] for shown in entry.replies) for entry in key.entries}
    assert len(orders) == 2  # the order tells nothing


def test_sheets_are_not_written_over(folder):
    with pytest.raises(InputError, match="holds sheets already"):
        write_sheets(folder, offered(), Sampling(5, 1), 2, ABOUT)
    with pytest.raises(InputError, match="answered by all"):
        write_sheets(folder.parent / "new", [], Sampling(5, 1), 2, ABOUT)


def test_figures_are_means_over_raters_and_contexts(folder):
    key = Key.from_json((folder / KEY).read_bytes())
    rate(folder, key, lambda entry, shown: (3, 3, 3, 4) if "ours" in shown.who else (2, 2, 5, 3))
    rate(folder, key, lambda entry, shown: (4, 3, 3, 1) if "ours" in shown.who else (2, 2, 5, 3), "-second")
    rated = read_ratings(folder)
    found = system_scores("ours", rated)
    assert found["rated_empathy"] == 3.5 and found["rated_overall"] == 2.5 and found["preferred"] == 0
    (folder / "sheet-01-second.csv").unlink()  # now two contexts have one rater, who likes ours better
    assert system_scores("ours", read_ratings(folder))["preferred"] == pytest.approx(40)
    assert system_scores("same", read_ratings(folder))["level"] == 100
    assert "preferred" not in system_scores(PERSON, rated)
    with pytest.raises(InputError, match="nobody"):
        system_scores("nobody", rated)


def test_a_sheet_that_nobody_rated_is_left_out(folder):
    key = Key.from_json((folder / KEY).read_bytes())
    with pytest.raises(InputError, match="holds no ratings"):
        read_ratings(folder)
    rate(folder, key, lambda entry, shown: (1, 1, 1, 1))
    (folder / "sheet-02.csv").unlink()
    assert len(read_ratings(folder)) == 3


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["1,A,1,1,1,1"], "no ratings of B"),
        (["1,A,1,1,1,6", "1,B,1,1,1,1"], "outside the scale"),
        (["1,A,1,1,1,nan", "1,B,1,1,1,1"], "outside the scale"),
        (["1,A,1,1,1"], "no line of ratings"),
        (["1,A,good,1,1,1"], "no line of ratings"),
        (["9,A,1,1,1,1"], "no reply is A of context 9"),
        (["1,C,1,1,1,1"], "no reply is C of context 1"),
    ],
)
def test_ratings_that_cannot_be_are_an_error_that_names_them(folder, lines, said):
    write_csv(folder, 1, lines)
    with pytest.raises(InputError, match=said):
        read_ratings(folder)


def test_another_header_is_an_error(folder):
    (folder / "sheet-01.csv").write_text("context,letter,score\n1,A,3\n")
    with pytest.raises(InputError, match="another header"):
        read_ratings(folder)


def test_every_system_gets_a_row_that_says_who_rated(folder):
    key = Key.from_json((folder / KEY).read_bytes())
    rate(folder, key, lambda entry, shown: (3, 3, 3, 4) if "ours" in shown.who else (2, 2, 5, 3))
    rows = {result.system: result for result in results_of(folder, "two neighbours")}
    assert set(rows) == {"ours", "same", PERSON}
    ours = rows["ours"]
    assert (ours.task, ours.split, ours.count) == ("ratings", "test", 5)
    assert ours.metric("preferred") == 100 and dict(ours.conditions)["raters"] == "two neighbours"
    assert dict(ours.units)["rated_overall"] == "rating, 1 to 5"


def test_candidates_are_drawn_with_their_plans(tmp_path):
    file = tmp_path / "replies.jsonl"
    made = [Candidate(f"Reply {number}.", PLAN, (("choice", 1.0),)) for number in range(6)]
    file.write_text(json.dumps({"id": "hit:0#3", "candidates": [one.to_dict() for one in made]}) + "\n")
    known = candidates_of(file)
    offers = candidate_offers(known["hit:0#3"], example(0), 4, random.Random(1))
    assert len(offers) == 5 and offers[PERSON].plan is None
    assert all(offers[who].plan == PLAN for who in offers if who != PERSON)
    assert all(
        offers[f"candidate {n + 1}"].text == f"Reply {n}." for n in range(6) if f"candidate {n + 1}" in offers
    )
    file.write_text('{"id": "a", "reply": "b"}\n')
    with pytest.raises(InputError, match="no id and candidates"):
        candidates_of(file)


def test_rater_agreement_is_reported(folder):
    key = Key.from_json((folder / KEY).read_bytes())
    scores = lambda entry, shown: (3, 3, 3, 4) if "ours" in shown.who else (2, 2, 5, 3)  # noqa: E731
    rate(folder, key, scores)
    conditions = dict(results_of(folder, "us")[0].conditions)
    assert conditions["rater agreement"] == "one rater a reply"
    rate(folder, key, scores, "-second")
    agreement = dict(results_of(folder, "us")[0].conditions)["rater agreement"]
    assert agreement.startswith("Krippendorff's alpha (interval): empathy 1.00, relevance 1.00, fluency 1.00")
    # All prefer ours: chance agrees always, and kappa is not defined.
    assert agreement.endswith("2 raters: nan")
    first = key.entries[0].number
    rate(folder, key, lambda entry, shown: scores(entry, shown) if entry.number > first else (3, 3, 3, 3))
    rate(
        folder,
        key,
        lambda entry, shown: scores(entry, shown) if entry.number > first else (3,) * 4,
        "-second",
    )
    # Four contexts prefer ours, one is level, and both raters say so.
    assert dict(results_of(folder, "us")[0].conditions)["rater agreement"].endswith("2 raters: 1.00")


def test_compact_ratings_hold_no_text_of_the_corpus(folder, tmp_path):
    key = Key.from_json((folder / KEY).read_bytes())
    rate(folder, key, lambda entry, shown: (3, 3, 3, 4) if "ours" in shown.who else (2, 2, 5, 3))
    rate(folder, key, lambda entry, shown: (4, 3, 3, 1) if "ours" in shown.who else (2, 2, 5, 3), "-second")
    out = tmp_path / "ratings.jsonl"
    assert "20 ratings" in call("compact", folder, "--out", out)
    text = out.read_text()
    assert "how sad" not in text and "I lost dog" not in text and "Oh no" in text
    rated, compact = read_ratings(folder), read_ratings(out)
    assert compact == rated
    assert {result.system: result.metrics for result in results_of(out, "us")} == {
        result.system: result.metrics for result in results_of(folder, "us")
    }
    out.write_text(text.replace('"overall":4', '"overall":7', 1).replace('"overall": 4', '"overall": 7', 1))
    with pytest.raises(InputError, match=r"ratings\.jsonl:\d+ is no rating: A rating is outside the scale"):
        read_ratings(out)
    with pytest.raises(InputError, match="has no reply"):
        Rating("", "train", "a#1", "first", 1, 1, 1, 1, ("ours",))


def test_the_command_makes_sheets_and_rows(tmp_path, monkeypatch):
    class Corpus:
        def __init__(self, path):
            pass

        def check(self, split):
            pass

        def examples(self, split):
            return map(example, range(4))

    monkeypatch.setattr(CORPORA, "load", lambda name: Corpus)
    file = tmp_path / "replies.jsonl"
    file.write_text(
        "".join(json.dumps({"id": f"hit:{n}#3", "reply": f"Oh no, {n}!"}) + "\n" for n in range(4))
    )
    folder, kept = tmp_path / "rated", tmp_path / "results"
    printed = call("sheets", folder, f"ours={file}", "--count", 3, "--per", 2)
    assert "3 contexts on 2 sheets" in printed
    rate(folder, Key.from_json((folder / KEY).read_bytes()), lambda entry, shown: (3, 3, 3, 4))
    command = ["score", folder, "--raters", "us", "--keep", kept]
    assert "one rater a reply" in call(*command)

    def kept_result(name):
        (result,) = kept.rglob(name)
        return read_result(result)

    assert kept_result("ours.json").metric("level") == 100
    (tmp_path / "run.json").write_text('{"checkpoint": "abc"}')
    call(*command, "--ours", f"ours={tmp_path}")
    assert kept_result("ours.json").checkpoint == "abc"
    assert not list(kept.rglob("*people-of-another-day.json"))
    call(*command, "--people", "people of another day")
    assert kept_result("*people-of-another-day.json").metric("rated_overall") == 4
    with pytest.raises(InputError, match=r"no folder with a run\.json"):
        call(*command, "--ours", "ours=nowhere")
    with pytest.raises(InputError, match="NAME=FILE"):
        call("sheets", folder, "ours")

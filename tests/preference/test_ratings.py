"""Blind sheets, and what raters said of them."""

import json
import random

import pytest

from listenwell.corpora.sampling import Sampling
from listenwell.dialogue import Candidate, Dialogue, Example, Factors, Turn
from listenwell.errors import InputError
from listenwell.evaluation.report.side_by_side import Column, Said
from listenwell.preference import ratings
from listenwell.preference.rating_sheets import (
    KEY,
    PERSON,
    Key,
    candidate_offers,
    candidates_of,
    systems_offers,
    write_sheets,
)
from listenwell.preference.ratings import HEADER, figures_of, main, read_ratings, results_of
from listenwell.results.store import read_result

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
    ours = Column("ours", "", {f"hit:{n}#3": Said(f"Oh no, {n}!", PLAN) for n in range(count)}, {})
    same = Column("same", "", {f"hit:{n}#3": Said(f"how sad {n}") for n in range(count)}, {})
    found = []
    for number in range(count):
        offers = systems_offers([ours, same], f"hit:{number}#3", example(number))
        found.append((f"hit:{number}#3", example(number), offers))
    return found


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


def test_a_context_that_one_system_did_not_answer_is_left_out():
    assert systems_offers([Column("ours", "", {}, {})], "hit:1#3", example(1)) is None


def test_figures_are_means_over_raters_and_contexts(folder):
    key = Key.from_json((folder / KEY).read_bytes())
    rate(folder, key, lambda entry, shown: (3, 3, 3, 4) if "ours" in shown.who else (2, 2, 5, 3))
    rate(folder, key, lambda entry, shown: (4, 3, 3, 1) if "ours" in shown.who else (2, 2, 5, 3), "-second")
    _, rated = read_ratings(folder)
    found = figures_of("ours", rated)
    assert found["rated_empathy"] == 3.5 and found["rated_overall"] == 2.5 and found["preferred"] == 0
    (folder / "sheet-01-second.csv").unlink()  # now two contexts have one rater, who likes ours better
    assert figures_of("ours", read_ratings(folder)[1])["preferred"] == pytest.approx(40)
    assert figures_of("same", read_ratings(folder)[1])["level"] == 100
    assert "preferred" not in figures_of(PERSON, rated)
    with pytest.raises(InputError, match="nobody"):
        figures_of("nobody", rated)


def test_a_sheet_that_nobody_rated_is_left_out(folder):
    key = Key.from_json((folder / KEY).read_bytes())
    with pytest.raises(InputError, match="Nobody has rated"):
        read_ratings(folder)
    rate(folder, key, lambda entry, shown: (1, 1, 1, 1))
    (folder / "sheet-02.csv").unlink()
    assert [one.entry.number for one in read_ratings(folder)[1]] == [1, 2, 5]


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


def test_the_command_makes_sheets_and_rows(tmp_path, monkeypatch, capsys):
    class Corpus:
        def __init__(self, path):
            pass

        def check(self, split):
            pass

        def examples(self, split):
            return map(example, range(4))

    monkeypatch.setattr(ratings.CORPORA, "load", lambda name: Corpus)
    file = tmp_path / "replies.jsonl"
    file.write_text(
        "".join(json.dumps({"id": f"hit:{n}#3", "reply": f"Oh no, {n}!"}) + "\n" for n in range(4))
    )
    folder, kept = tmp_path / "rated", tmp_path / "results"
    assert main(["sheets", str(folder), f"ours={file}", "--count", "3", "--per", "2"]) == 0
    assert "3 contexts on 2 sheets" in capsys.readouterr().out
    rate(folder, Key.from_json((folder / KEY).read_bytes()), lambda entry, shown: (3, 3, 3, 4))
    figures = ["figures", str(folder), "--raters", "us", "--keep", str(kept)]
    assert main(figures) == 0
    assert read_result(kept / "ratings-ours.json").metric("level") == 100
    (tmp_path / "run.json").write_text('{"checkpoint": "abc"}')
    assert main([*figures, "--ours", f"ours={tmp_path}"]) == 0
    assert read_result(kept / "ratings-ours.json").checkpoint == "abc"
    assert not (kept / "ratings-people-of-another-day.json").exists()
    assert main([*figures, "--people", "people of another day"]) == 0
    assert read_result(kept / "ratings-people-of-another-day.json").metric("rated_overall") == 4
    assert main([*figures, "--ours", "ours=nowhere"]) == 1
    assert main(["sheets", str(folder), "ours"]) == 1
    assert "NAME=FILE" in capsys.readouterr().err

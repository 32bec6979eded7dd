import re
from datetime import date

import pytest

from listenwell.errors import InputError, UnknownNameError
from listenwell.safety.answers import FALLBACKS, answer, answers, fallback, given_before
from listenwell.safety.help import FILE, LOCAL_EMERGENCY, TOPICS, HelpLine, all_lines, help_for
from listenwell.safety.patterns.base import KINDS
from listenwell.safety.replies import faults

NUMBERS = {
    "US": "988",
    "CA": "988",
    "GB": "116 123",
    "IE": "116 123",
    "AU": "13 11 14",
    "NZ": "1737",
    "FR": "3114",
    "DE": "0800 111 0 111",
    "ES": "024",
    "NL": "113",
    "BR": "188",
    "IN": "14416",
    "ZA": "0800 567 567",
}


def test_the_table_holds_these_numbers_and_no_others():
    general = [line for line in all_lines() if line.topic == "suicide"]
    assert {line.country: line.number for line in general} == NUMBERS
    assert date.fromisoformat(help_for().checked)


@pytest.mark.parametrize(("country", "number"), NUMBERS.items())
def test_the_line_of_a_country_is_named(country, number):
    found = help_for(country.lower())
    assert [line.number for line in found.lines_for("suicide")] == [number]
    for kind in ("suicide", "self_harm", "someone_else"):
        assert number in answer(kind, found) and number in answer(kind, found, again=True)


def test_lines_by_topic():
    assert {line.topic for line in all_lines()} == set(TOPICS)
    lines = [(line.country, line.topic, line.number) for line in all_lines()]
    assert len(set(lines)) == len(lines)
    british = help_for("GB")
    assert [line.number for line in british.lines_for("abuse")] == ["0808 2000 247", "0800 1111"]
    assert [line.number for line in british.lines_for("emergency")] == ["111"]
    assert [line.topic for line in british.lines_for("someone_else")] == ["suicide", "abuse", "child"]
    assert "0808 2000 247 or Childline: 0800 1111." in answer("abuse", british)
    with pytest.raises(UnknownNameError, match="abus"):
        HelpLine("GB", "Line", "1", topic="abus")


EMERGENCY = {
    "US": "911",
    "CA": "911",
    "GB": "999 or 112",
    "IE": "112 or 999",
    "AU": "000",
    "NZ": "111",
    "FR": "112",
    "DE": "112",
    "ES": "112",
    "NL": "112",
    "BR": "192 (ambulance) or 190 (police)",
    "IN": "112",
    "ZA": "112 from a mobile phone, 10177 (ambulance) or 10111 (police)",
}


def test_every_country_with_a_line_has_its_emergency_number():
    assert {country: help_for(country).emergency for country in NUMBERS} == EMERGENCY
    for country, number in EMERGENCY.items():
        assert f"Please call {number} now" in answer("emergency", help_for(country))


def test_emergency_numbers():
    assert help_for("NL").emergency == help_for("IT").emergency == "112"
    assert help_for("JP").emergency == help_for().emergency == LOCAL_EMERGENCY
    assert help_for("IT").lines == ()
    assert help_for("uk") == help_for("GB")


@pytest.mark.parametrize("country", ["Netherlands", "1", "N1", "ÄÖ", "   "])
def test_what_is_no_country_is_an_error(country):
    with pytest.raises(InputError, match="The country is"):
        help_for(country)


def test_an_operators_own_table(tmp_path):
    own = tmp_path / "lines.toml"
    text = FILE.read_text(encoding="utf-8").replace('number = "1737"', 'number = "0000"')
    own.write_text(text, "utf-8")
    assert help_for("NZ", own).lines[0].number == "0000"
    begin, end = text.index("[emergency.elsewhere]"), text.index("[[line]]")
    own = tmp_path / "union.toml"  # one that names no others
    own.write_text(text[:begin] + text[end:], "utf-8")
    assert (help_for("NZ", own).emergency, help_for("IE", own).emergency) == (LOCAL_EMERGENCY, "112")
    own = tmp_path / "broken.toml"
    own.write_text("[")
    with pytest.raises(InputError, match="cannot be read"):
        help_for("NZ", own)


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("country", [None, *EMERGENCY])
@pytest.mark.parametrize("kind", KINDS)
def test_every_answer_is_whole_says_where_help_is_and_passes_our_own_filter(kind, country, again):
    found = help_for(country)
    text = answer(kind, found, again)
    assert "{" not in text and found.emergency in text
    assert kind == "emergency" or found.directory in text
    assert again or "I am a program" in text
    assert not re.search(r"\b(I promise|don't worry|everything will be)\b", text)
    assert not faults(text)
    assert len(text) < 1000


def test_the_second_answer_of_a_kind_is_shorter():
    first = answer("suicide", help_for("NL"))
    assert given_before("suicide", ["Hello!", first])
    assert not given_before("abuse", [first]) and not given_before("suicide", ["Hello!"])
    assert len(answer("suicide", help_for("NL"), again=True)) < len(first)


def test_a_missing_answer_is_named(tmp_path):
    own = tmp_path / "answers.toml"
    own.write_text('[first]\nsuicide = ["a"]\n')
    with pytest.raises(InputError, match="has no first answer to self_harm"):
        answers(own)


def test_fallbacks_do_not_repeat_while_there_are_others():
    said = []
    for _ in FALLBACKS:
        said.append(fallback(said))
    assert sorted(said) == sorted(FALLBACKS)
    assert fallback(said) == FALLBACKS[0]
    assert not any(faults(text) for text in FALLBACKS)

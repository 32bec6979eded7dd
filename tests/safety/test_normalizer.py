import pytest
from hypothesis import given
from hypothesis import strategies as st

from listenwell.safety.normalizer import normalize, one_typo


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("I'm gonna k!ll my self 2nite!!", " i am going to kill myself tonight . "),
        ("su1cide, s*icidal; d1e", " suicide , suicidal . die "),
        ("k i l l myself", " kill myself "),
        ("k.i.l.l.m.y.s.e.l.f pls", " kill myself please "),
        ("i want 2 die, i have 2 dogs", " i want to die , i have to dogs "),
        ("dieeee killllll", " die kill "),
        ("it 's fun, i did n't, ca n't", " it is fun , i did not , can not "),
        ("My sister's note", " my sister 's note "),
        ("sucidal suiside mysefl overdone", " suicidal suicide myself overdone "),
        ("Ｉ don’t “want” tо dіе 😂", ' i do not " want " to die lol '),
        ("hello!world", " hello world "),
        ("ok. ill go, she is ill", " ok . i will go , she is ill "),
        ("kms rn", " kill myself right now "),
        ("", " "),
    ],
)
def test_how_people_write(written, read):
    assert normalize(written).text == read


def test_places_lead_back_to_what_was_written():
    written = "Well… I wannа  k!ll my self"  # the last letter of wanna is Cyrillic
    read = normalize(written)
    start = read.text.index(" want to")
    assert written[slice(*read.span(start, start + len(" want to kill myself")))] == "wannа  k!ll my self"
    start = read.text.index("kill")
    assert written[slice(*read.span(start, start + 4))] == "k!ll"


@given(st.text(st.characters(exclude_categories=()), max_size=60))
def test_any_text_has_words_with_places_in_it(text):
    read = normalize(text)
    assert len(read.begins) == len(read.spans)
    assert read.text.startswith(" ") and read.text.endswith(" ") and "  " not in read.text
    for begin, (start, end) in zip(read.begins, read.spans, strict=True):
        assert read.text[begin - 1] == " " != read.text[begin]
        assert 0 <= start < end <= len(text)
        assert read.span(begin, begin + 1) == (start, end)


def test_one_typo_of_the_finger():
    for slip in ("suicde", "suicidee", "suicibe", "siucide"):
        assert one_typo(slip, "suicide")
    for other in ("suicided1", "suice", "decides"):
        assert not one_typo(other, "suicide")

import pytest

from listenwell.generators.decoding import Ending


@pytest.mark.parametrize(
    ("text", "end"),
    [
        ("One. Two! Three? Four", "One. Two! Three?"),
        ('He said "no." Then. Left. More', 'He said "no." Then. Left.'),
        ("One. Two! Three?", None),  # no white space after it: the mark may go on
        ("It costs 3.50 or 4.20 or 5.10 now", None),
        ("One.\n\nTwo.", "One."),
        ("One line\n\nanother", "One line"),
        ("Wait... what?! Really?! Yes", "Wait... what?! Really?!"),
        ("", None),
    ],
)
def test_a_reply_ends_after_three_sentences_or_a_paragraph(text, end):
    cut = Ending(max_sentences=3).cut(text, shown=0, spent=0.1)
    assert (text[:cut] if cut is not None else None) == end


def test_late_in_the_budget_the_next_sentence_is_the_last():
    ending = Ending(max_sentences=3, soft_share=0.5)
    assert ending.cut("One. Tw", shown=4, spent=0.4) is None
    assert ending.cut("One. Tw", shown=4, spent=0.6) == 4


def test_what_was_shown_is_never_taken_back():
    ending = Ending(max_sentences=3, soft_share=0.5)
    assert ending.cut("One. Two three", shown=8, spent=0.9) is None

import pytest

from listenwell.errors import InputError, RecipeError, UnknownNameError
from listenwell.papers.comae.config import ComaeConfig
from tests.papers.comae.talks import FAMILY


def test_the_family_goes_by_the_papers_names():
    assert [config.title for config in FAMILY] == [
        "vanilla", "+CM", "+DA", "+EM",
        "CM ‖ DA", "CM ‖ EM", "DA ‖ EM", "CM ‖ DA ‖ EM",
        "CM → DA", "CM → EM", "DA → EM", "CM → DA → EM",
    ]  # fmt: skip


def test_the_slots_in_use():
    assert ComaeConfig().slots == (0, 1, 2, 3, 4)
    assert ComaeConfig(factors=("act", "expressed_emotion")).slots == (3, 4)
    assert ComaeConfig(factors=()).slots == ()


def test_it_is_written_and_read():
    config = ComaeConfig(factors=("expressed_emotion",), hierarchical=False, weight=0.5, lr_multiplier=10)
    assert ComaeConfig.from_dict(config.to_dict()) == config


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"factors": ("expressed_emotion", "emotoin")}, UnknownNameError, "emotoin"),
        ({"factors": ("act", "act")}, InputError, "Name each factor once"),
        ({"weight": -1.0}, RecipeError, r"comae.weight is -1"),
        ({"lr_multiplier": 0.0}, RecipeError, r"comae.lr_multiplier is 0"),
        ({"weight": float("nan")}, RecipeError, "nan"),
    ],
)
def test_a_wrong_setting_is_named(settings, error, message):
    with pytest.raises(error, match=message):
        ComaeConfig(**settings)

"""The package as a whole: light to import, every name at hand, clear when a library is missing."""

import pkgutil
import subprocess
import sys
from importlib import import_module
from inspect import isclass, isfunction

import pytest

from listenwell import metrics
from listenwell.errors import MissingExtraError

HEAVY = ("torch", "transformers", "sklearn", "scipy", "sacrebleu", "rouge_score", "nltk", "vaderSentiment")


def test_importing_the_metrics_loads_no_heavy_library():
    script = f"import sys, listenwell.metrics; print(sorted({set(HEAVY)} & set(sys.modules)))"
    found = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert found.stdout.strip() == "[]"


def test_every_metric_is_at_hand_and_described():
    found = set()
    for module in pkgutil.iter_modules(metrics.__path__):
        if module.name not in {"checks"}:
            names = vars(import_module(f"{metrics.__name__}.{module.name}"))
            found |= {
                name
                for name, thing in names.items()
                if (isfunction(thing) or isclass(thing))
                and not name.startswith("_")
                and thing.__module__.endswith(f".{module.name}")
            }
    assert found == set(metrics.__all__) - {"STOCK_PHRASES", "Level", "expanded", "normalized", "words"}
    assert all(getattr(metrics, name).__doc__ for name in found)


@pytest.mark.parametrize(
    ("module", "package", "compute"),
    [
        ("sacrebleu", "sacrebleu", lambda: metrics.bleu(["a"], ["a"])),
        ("sacrebleu", "sacrebleu", lambda: metrics.sacre_bleu(["a"], ["a"])),
        ("rouge_score.rouge_scorer", "rouge-score", lambda: metrics.rouge_l(["a"], ["a"])),
        ("nltk.translate.meteor_score", "nltk", lambda: metrics.meteor(["a"], ["a"])),
        ("vaderSentiment.vaderSentiment", "vaderSentiment", lambda: metrics.vader(["a"])),
        ("sklearn.metrics", "scikit-learn", lambda: metrics.classification_metrics("a", "a", "a")),
        ("scipy.stats", "scipy", lambda: metrics.sign_test(1, 2)),
    ],
)
def test_a_missing_library_is_named_with_its_extra(monkeypatch, module, package, compute):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match=rf"'{package}'.*listenwell\[bench\]"):
        compute()

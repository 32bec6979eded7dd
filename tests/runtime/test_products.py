import numpy as np
import pytest

from listenwell.runtime import products
from listenwell.runtime.products import product

RANDOM = np.random.default_rng(0)
SHAPES = [((1, 8), (8, 3)), ((5, 8), (8, 1)), ((4, 5, 8), (4, 8, 3))]


@pytest.mark.parametrize("few", [0, 10**6])
@pytest.mark.parametrize(("first", "second"), SHAPES)
def test_products_are_those_of_numpy_however_large(first, second, few, monkeypatch):
    monkeypatch.setattr(products, "FEW", few)
    x, y = (RANDOM.normal(size=shape).astype(np.float32) for shape in (first, second))
    found = product(x, y)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, x @ y, atol=1e-5)


def test_small_ones_are_not_left_to_threads(monkeypatch):
    asked = list[str]()
    einsum = np.einsum
    monkeypatch.setattr(
        np, "einsum", lambda formula, *given: asked.append(formula) or einsum(formula, *given)
    )
    product(np.ones((9, 384)), np.ones((384, 32)))
    assert len(asked) == 1
    product(np.ones((600, 384)), np.ones((384, 32)))
    assert len(asked) == 1

import pytest


@pytest.fixture(scope="module")
def scratch(tmp_path_factory):
    """A folder that the examples of one property share: each writes its file anew."""
    return tmp_path_factory.mktemp("scratch")

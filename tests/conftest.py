"""What every test shares: a cache of its own, so that none writes to the user's."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ENTROPY_VALLEY_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


def pytest_collection_modifyitems(items):
    """The longest files first, whole workflows before all: at the end the workers then share short ones."""
    items.sort(key=lambda item: (item.get_closest_marker("slow") is None, "workflow" not in item.path.parts))

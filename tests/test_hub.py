"""Without a network, one error says what to download and how to point to a copy."""

from __future__ import annotations

import pytest

from entropy_valley import hub
from entropy_valley.errors import InputError


@pytest.fixture(autouse=True)
def no_network(monkeypatch):
    """Nothing listens on port 9 of this machine; the offline switch of CI machines would be another error."""
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setattr("huggingface_hub.hf_api.constants.ENDPOINT", "http://127.0.0.1:9")


@pytest.mark.parametrize(
    "call",
    [
        lambda folder: hub.resolve("someone/model", None, "`backbones.mine.folder`"),
        lambda folder: hub.download("someone/model", "0" * 40, folder, ["*.json"], "`backbones.mine.folder`"),
    ],
)
def test_it_says_what_to_do(call, tmp_path):
    with pytest.raises(InputError, match=r"someone/model: cannot be downloaded .*hf download someone/model.*backbones"):
        call(tmp_path)

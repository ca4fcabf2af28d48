"""What a killed training goes on from is refused where it is damaged."""

from __future__ import annotations

import pytest

from entropy_valley import files
from entropy_valley.errors import InputError
from entropy_valley.training import deepspeed


@pytest.fixture
def work(tmp_path):
    files.write_text(tmp_path / "step2/optim.pt", "states\n")
    files.write_json(tmp_path / "last.json", {"tag": "step2", "digests": files.digests((tmp_path / "step2").iterdir())})
    return tmp_path


def test_a_checkpoint_is_as_it_was_written(work):
    deepspeed.require_whole(work)
    (work / "step2/optim.pt").write_text("statez\n")
    with pytest.raises(InputError, match=r"optim\.pt: not as it was written.*the training then starts anew"):
        deepspeed.require_whole(work)
    (work / "step2/optim.pt").unlink()
    with pytest.raises(InputError, match=r"optim\.pt: file not found"):
        deepspeed.require_whole(work)


@pytest.mark.parametrize("cut", [0, 9, -1])
def test_so_is_that_of_a_pre_training(tmp_path, cut):
    path = tmp_path / "state.pt"
    path.write_bytes(deepspeed.with_digest(b"states"))
    assert deepspeed.without_digest(path) == b"states"
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(InputError, match="the training then starts anew"):
        deepspeed.without_digest(path)

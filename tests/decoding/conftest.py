import pytest
from bench import Bench
from tiny_checkpoints import SOURCES, backbone, checkpoints, diffusion, llada, llama3, one_thread  # noqa: F401 - fixtures

from entropy_valley import files
from entropy_valley.translation.job import RunModel


@pytest.fixture
def testset(tmp_path):
    """Twelve pairs of different lengths."""
    path = tmp_path / "test.jsonl"
    pairs = zip(SOURCES[::5] + SOURCES[1::5], SOURCES[::-1], strict=False)
    files.write_jsonl(
        path, [{"id": f"s{n}", "source": source, "target": target} for n, (source, target) in enumerate(pairs)]
    )
    return path


@pytest.fixture
def no_model(monkeypatch):
    """From here on a job that loads the model fails."""

    def refuse():
        monkeypatch.setattr(RunModel, "backbone", property(lambda model: pytest.fail("the model was loaded")))

    return refuse


@pytest.fixture
def bench(tmp_path, checkpoints, testset):  # noqa: F811
    """Jobs on LLaDA, in a folder of their own."""
    return Bench(tmp_path, checkpoints, testset)

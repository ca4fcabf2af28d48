"""One machine with eight GPUs, by its profile: jobs run at once, each on GPUs of its own."""

from __future__ import annotations

import pytest
from workspace import Workspace

from entropy_valley import machine

SMI = "#!/bin/bash\n" + "".join(f'echo "GPU {i}: NVIDIA H100 80GB HBM3 (UUID: GPU-{i})"\n' for i in range(8))
RUNS = [f"{direction}/llada-8b/seed{seed}" for direction in ("en-zh", "zh-en") for seed in (1, 2)]
SMALL = {
    "check": False,  # this machine has no GPU
    "matrix": {"backbones": ["llada-8b"], "directions": ["en-zh", "zh-en"], "seeds": [1, 2]},
    "training": {"processes": 2},
    "instruct": {"backbones": []},
    "autoregressive": {"backbones": []},
    "tables": {"studies": []},
}


@pytest.mark.slow
def test_trainings_of_two_processes_share_out_eight_gpus(tmp_path, monkeypatch):
    for name in (machine.VISIBLE, *machine.SCHEDULERS):
        monkeypatch.delenv(name, raising=False)
    workspace = Workspace(tmp_path, "config.yaml", SMALL)
    workspace.note_gpus(4, "train")
    (tmp_path / "bin" / "nvidia-smi").write_text(SMI)
    (tmp_path / "bin" / "nvidia-smi").chmod(0o755)
    adapters = [f"results/{run}/adapter/adapter.json" for run in RUNS]
    workspace.run("--workflow-profile", "local-gpu", *adapters, environment={machine.LOCKS: str(tmp_path / "locks")})
    seen = workspace.gpus_seen("train")
    assert [len(one) for one in seen] == [2] * 4
    assert sorted(gpu for one in seen for gpu in one) == [f"GPU-{i}" for i in range(8)]

"""The rules where jobs run otherwise: on one machine with eight GPUs, and under an executor that is not ours."""

import json
import os

import pytest
from workspace import Workspace

from entropy_valley import machine

RUNS = [f"{direction}/llada-8b/seed{seed}" for direction in ("en-zh", "zh-en") for seed in (1, 2)]
SMALL = {
    "check": False,  # this machine has no GPU
    "matrix": {"backbones": ["llada-8b"], "directions": ["en-zh", "zh-en"], "seeds": [1, 2]},
    "training": {"processes": 2},
    "instruct": {"backbones": []},
    "autoregressive": {"backbones": []},
    "tables": {"studies": []},
}
UUIDS = [f"GPU-{number}{os.getpid()}" for number in range(8)]  # which no other test claims
SMI = "#!/bin/bash\n" + "".join(f'echo "{i}, {uuid}, NVIDIA H100 80GB HBM3"\n' for i, uuid in enumerate(UUIDS))


@pytest.mark.slow
def test_trainings_of_two_processes_share_out_eight_gpus(tmp_path, monkeypatch):
    """By the profile of such a machine: jobs run at once, each on GPUs of its own."""
    for name in (machine.VISIBLE, *machine.SCHEDULERS):
        monkeypatch.delenv(name, raising=False)
    workspace = Workspace(tmp_path, "config.yaml", SMALL)
    workspace.note_gpus(4, "train")
    (tmp_path / "bin" / "nvidia-smi").write_text(SMI)
    (tmp_path / "bin" / "nvidia-smi").chmod(0o755)
    adapters = [f"results/{run}/adapter/adapter.json" for run in RUNS]
    workspace.run("--workflow-profile", "local-gpu", *adapters)
    seen = workspace.gpus_seen("train")
    assert [len(one) for one in seen] == [2] * 4
    assert sorted(gpu for one in seen for gpu in one) == UUIDS


# Writes which params a job was given.
TELLING = """
from pathlib import Path

for path in snakemake.output:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(snakemake.params.spec)
"""
SUBMIT = "#!/bin/sh\necho $$ | tee -a submitted\n{ {WAIT} sh $1; } > $1.log 2>&1 &\n"


def by_a_script(workspace, wait=""):
    """Options that let a workspace run its jobs by a script, which first does what ``wait`` says."""
    submit = workspace.folder / "submit.sh"
    submit.write_text(SUBMIT.replace("{WAIT}", wait))
    submit.chmod(0o755)
    options = "--executor cluster-generic --cluster-generic-submit-cmd ./submit.sh --seconds-between-status-checks 1"
    return [*options.split(), "--jobs", "2"]


@pytest.mark.cluster  # each job starts a Snakemake of its own
def test_a_config_that_is_edited_while_jobs_wait_changes_nothing(tmp_path):
    workspace = Workspace(tmp_path, "config.yaml", SMALL)
    for script in (tmp_path / "workflow/scripts").glob("*.py"):
        script.write_text(TELLING)
    config, ratios = tmp_path / "config.yaml", "en-zh: [0.70, 0.75,"
    before = config.read_text()
    assert ratios in before
    target = f"results/{RUNS[0]}/matrix/translations.jsonl"
    workspace.finish(target)
    (tmp_path / target).unlink()
    process = workspace.start(*by_a_script(workspace, "while [ ! -e edited ]; do sleep 0.1; done;"), target)
    while not (tmp_path / "submitted").exists():
        assert process.poll() is None, process.stdout.read()
    config.write_text(before.replace(ratios, "en-zh: [0.65, 0.75,"))
    (tmp_path / "edited").touch()
    text, _ = process.communicate()
    assert process.returncode == 0, text
    spec = json.loads((tmp_path / target).read_text())
    assert "[0.7,0.75," in json.dumps(spec, separators=(",", ":"))
    assert workspace.planned(target).keys() == {"translate en-zh.llada-8b.1.matrix"}
    config.write_text(before)
    assert not workspace.planned(target)

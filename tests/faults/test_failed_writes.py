"""A write that fails at any moment: one line names the file, no result is torn, and then the job ends well."""

from __future__ import annotations

import os
import shutil
import subprocess
from contextlib import contextmanager

import pytest
from faults import MayNotWrite, NoMoreThan
from stages import stages
from trial import Trial

pytestmark = pytest.mark.faults
STAGES = list(stages())


def failed_or_finished(trial, outcome):
    """One clear error that names a path in the folder; or the write that failed was none of a result's."""
    if outcome.status == 0:
        trial.require_finished(outcome)
        return
    place = outcome.error.removeprefix("error: ").split(": ")[0]
    assert (trial.folder / place).exists() or (trial.folder / place).parent.exists(), outcome.said
    trial.require_old_or_new()


@pytest.mark.parametrize("number", range(3))
@pytest.mark.parametrize("name", STAGES)
def test_a_write_fails(chain, chance, tmp_path, name, number):
    trial = Trial(chain, name, tmp_path, old=number > 0 and bool(chain.stages[name].other))
    failed_or_finished(trial, trial.run(NoMoreThan(trial.size(chance))))
    trial.require_finished(trial.run())


@contextmanager
def small_disk(folder, kilobytes):
    """A file system of this size at ``folder``, which takes what is there along."""
    kept = shutil.move(folder, f"{folder}.kept")
    folder.mkdir()
    mounted = ["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "none", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mounted, capture_output=True).returncode:
        pytest.skip("a file system can be mounted by root alone")
    try:
        shutil.copytree(kept, folder, dirs_exist_ok=True)
        yield
    finally:
        subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.parametrize("name", ["corpus", "pretrain", "train", "translate", "score", "table", "figure"])
def test_a_full_file_system(chain, chance, tmp_path, name):
    trial = Trial(chain, name, tmp_path)
    with small_disk(trial.folder, 16_384):
        left = shutil.disk_usage(trial.folder).free - chance.randrange(64 * 1024)
        (trial.folder / "filler").write_bytes(bytes(max(0, left)))
        outcome = trial.run()
        (trial.folder / "filler").unlink()
        failed_or_finished(trial, outcome)
        trial.require_finished(trial.run())


@pytest.mark.parametrize("name", STAGES)
def test_a_read_only_folder(chain, chance, tmp_path, name):
    """One of those that the stage writes to, or the folder of all."""
    trial = Trial(chain, name, tmp_path, old=bool(chain.stages[name].other))
    folders = sorted({path.parent for path in trial.folder.rglob("*") if path.is_file()})
    own = [folder for folder in folders if not folder.is_relative_to(trial.folder / "given")]
    folder = chance.choice([trial.folder, *own])
    failed_or_finished(trial, trial.run(MayNotWrite(str(folder))))
    folder.chmod(0o755)
    trial.require_finished(trial.run())

"""What needs the package index, for `make nightly`: two Snakemakes, two installs of the library, a storage."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from workspace import ROOT, Workspace

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif("ENTROPY_VALLEY_NIGHTLY" not in os.environ, reason="ENTROPY_VALLEY_NIGHTLY is not set"),
]

# --- the oldest Snakemake that the workflow takes, and the newest one

OLDEST = re.search(r'min_version\("(.*)"\)', (ROOT / "Snakefile").read_text())[1]
MAIN, BASELINE = (f"results/smallest/tables/{name}.tex" for name in ("main", "ar_reference"))


@pytest.mark.parametrize("version", [f"=={OLDEST}", f">={OLDEST}"], ids=["oldest", "newest"])
def test_the_workflow_runs_and_plans(tmp_path, version):
    packages = tmp_path / "packages"
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--target", packages, f"snakemake{version}"]
    subprocess.run(command, check=True)
    environment = {"PYTHONPATH": os.pathsep.join([str(packages), *filter(None, sys.path)])}
    workspace = Workspace(tmp_path, "config/demo.yaml", "config/smallest.yaml", {"check": False})

    def printed(*arguments, over=None):
        process = workspace.start(*arguments, over=over, environment=environment)
        text, _ = process.communicate()
        assert process.returncode == 0, text
        return text

    used = printed("--version").strip()
    assert used.startswith(OLDEST) or version.startswith(">=")
    printed("--cores", "2", MAIN, BASELINE)
    assert "Nothing to be done" in printed("-n", MAIN)
    text = printed("-n", MAIN, over={"decoding": {"precision": "bfloat16"}})
    counts = dict(re.findall(r"^(\w+) +(\d+) ", text, re.MULTILINE))
    assert counts == {"translate": "1", "score": "1", "table": "1", "all": "3"}


# --- the library alone, with the oldest packages that it takes and the newest ones

COPIED = ("src", "config", "pyproject.toml", "README.md", "LICENSE", "config.yaml")


def wheel(folder: Path) -> Path:
    """The wheel, as `python -m build` makes it: of what the source archive has."""
    for name in COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, symlinks=True, ignore=shutil.ignore_patterns("*.egg-info"))
        else:
            shutil.copy(ROOT / name, folder)
    shutil.unpack_archive(folder / _built("sdist", folder), folder / "unpacked")
    (unpacked,) = (folder / "unpacked").iterdir()
    return unpacked / _built("wheel", unpacked)


def _built(kind: str, folder: Path) -> str:
    program = f"from setuptools import build_meta; print(build_meta.build_{kind}('.'))"
    done = subprocess.run([sys.executable, "-c", program], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.splitlines()[-1]


def oldest() -> list[str]:
    """The lower bounds of the library's packages, as exact versions."""
    return [
        re.sub(r">=([\d.]+).*", r"==\1", line)
        for line in tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    ]


LIBRARY = """
from entropy_valley import Translator, tiny

translation = Translator.load(**tiny("en-de")).translate(["We are going home."])[0]
print(translation.text, translation.canvas, sorted(translation.entropies))
"""


@pytest.mark.parametrize("pins", [oldest(), []], ids=["oldest", "newest"])
def test_the_library_installs_beside_others_and_translates(tmp_path, pins):
    for folder in (sources := tmp_path / "sources", elsewhere := tmp_path / "elsewhere"):
        folder.mkdir()
    built = wheel(sources)
    with zipfile.ZipFile(built) as archive:  # in the repository they are links
        for file in ("config.yaml", "config/studies.yaml", "config/released.yaml", "config/schema.json"):
            assert archive.read(f"entropy_valley/defaults/{file}") == (ROOT / file).read_bytes()
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    bins = tmp_path / "venv/bin"
    subprocess.run([bins / "pip", "install", "--quiet", built, *pins], check=True)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}

    def printed(*command, text=""):
        options = {"cwd": elsewhere, "env": environment, "capture_output": True, "text": True}
        done = subprocess.run(list(map(str, command)), input=text, check=False, **options)
        return done.stdout + done.stderr

    assert printed(bins / "python", "-c", LIBRARY).endswith("Wir gehen nach Hause. 6 [5, 6, 7, 8, 9]\n")
    command = bins / "entropy-valley"
    assert printed(command, "translate", "--tiny", "en-de", text="We are going home.\n").startswith("Wir gehen ")
    told = printed(command, "check", "--installation")
    assert re.search(r"^ok +torch ", told, re.MULTILINE), told
    assert "pip install '.[workflow]'" in printed(command, "plan")
    assert not [*elsewhere.iterdir()]


# --- results in a storage

# Stands for a cloud: each job runs in an empty folder, gets the workflow's sources and its inputs from the storage, and
# leaves its outputs there. The folder of results of the first process has another path there.
SUBMIT = """#!/bin/sh
node=$(mktemp -d ../node.XXXXXX)
sed "s,$PWD/results,/elsewhere/results," "$1" > $node/job.sh
basename $node
(cd $node; sh job.sh > out.log 2>&1; echo $? > status) > /dev/null 2>&1 &
"""
STATUS = """#!/bin/sh
case $(cat ../$1/status 2> /dev/null) in "") echo running;; 0) echo success;; *) echo failed;; esac
"""


@pytest.mark.skipif(not (shutil.which("rsync") and shutil.which("git")), reason="needs rsync and git")
def test_jobs_that_share_a_storage_alone_give_the_table_of_a_local_run(tmp_path):
    packages, store = tmp_path / "packages", tmp_path / "store"
    plugin = [sys.executable, "-m", "pip", "install", "--quiet", "--target", packages, "snakemake-storage-plugin-fs"]
    subprocess.run(plugin, check=True)
    environment = {"PYTHONPATH": os.pathsep.join([*filter(None, sys.path), str(packages)])}
    cloud = (
        "--executor cluster-generic --cluster-generic-submit-cmd ./submit.sh --cluster-generic-status-cmd ./status.sh"
    )
    cloud += f" --jobs 2 --default-storage-provider fs --default-storage-prefix {store}"
    cloud += " --shared-fs-usage none --job-deploy-sources --seconds-between-status-checks 1"
    for name, options in (("local", ["--cores", "2"]), ("stored", cloud.split())):
        (tmp_path / name).mkdir()
        workspace = Workspace(tmp_path / name, "config/demo.yaml", "config/smallest.yaml", real=True)
        for script, text in (("submit.sh", SUBMIT), ("status.sh", STATUS)):
            (workspace.folder / script).write_text(text)
            (workspace.folder / script).chmod(0o755)
        for command in (["init", "--quiet"], ["add", "."]):  # Snakemake sends what git knows
            subprocess.run(["git", *command], cwd=workspace.folder, check=True)
        process = workspace.start(MAIN, *options, environment=environment)
        text, _ = process.communicate()
        logs = "".join(path.read_text()[-2000:] for path in tmp_path.glob("node.*/out.log"))
        assert process.returncode == 0, text + logs
    assert len(list(tmp_path.glob("node.*"))) >= 5  # pretrain, train_comet, train, translate, score
    for path in (MAIN, MAIN.replace(".tex", ".md"), MAIN.replace(".tex", ".csv")):
        assert (store / path).read_bytes() == (tmp_path / "local" / path).read_bytes()

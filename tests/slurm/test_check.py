"""`entropy-valley check --profile slurm`, with commands that answer as SLURM does."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
import yaml
from job_lists import jobs_of

from entropy_valley import cli
from entropy_valley.errors import InputError
from entropy_valley.runs import plan, slurm

ROOT = Path(__file__).parents[2]
PARTITION = "PartitionName=gpu MaxTime={time} State={state}"
USUAL = {"time": "1-00:00:00", "state": "UP"}
TAKES = 'case "$*" in *--test-only*--wrap=true) echo "$*" >> asked;; *) touch submitted;; esac'
NO_NODE = 'echo "allocation failure: Requested node configuration is not available" >&2; exit 1'
IDLE = "idle|8|8000|(null)|(null)"


class Site:
    """A folder with the profiles of the repository, and a SLURM that says what a test gives it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        shutil.copytree(ROOT / "profiles", folder / "profiles")
        for name in ("config", "config.yaml"):
            (folder / name).symlink_to(ROOT / name)
        (folder / "bin").mkdir()
        self.says()

    def says(
        self, sbatch: str = TAKES, age: int = 300, sacct: str = "true", nodes: str = IDLE, **partition: object
    ) -> None:
        """What its commands do; ``nodes`` are lines of sinfo, ``partition`` is what its partitions are like."""
        line = PARTITION.format(**USUAL | partition)
        answers = {
            "sbatch": sbatch,
            "scontrol": f"case \"$*\" in *partition*) echo '{line}';; *) echo 'MinJobAge = {age} sec';; esac",
            "sacct": sacct,
            "sinfo": f"case \"$*\" in *--format=%G) echo '{nodes}' | cut -d'|' -f4;; *) echo '{nodes}';; esac",
        }
        for name, answer in answers.items():
            path = self.folder / "bin" / name
            path.write_text(f"#!/bin/sh\n{answer}\n")
            path.chmod(0o755)

    def change(self, *changes: tuple[str, str], file: str = "config.yaml") -> None:
        path = self.folder / "profiles/slurm" / file
        text = path.read_text()
        for before, after in changes:
            assert before in text
            text = text.replace(before, after)
        path.write_text(text)

    def asked(self) -> list[str]:
        return (self.folder / "asked").read_text().splitlines()


@pytest.fixture
def site(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    return Site(tmp_path)


@pytest.fixture
def check(site, monkeypatch, capsys):
    """Lines of the command by their names, and whether it says that all is well."""

    def listed(experiment, configfiles):
        over = Path("over.yaml")
        between = [name for name in configfiles if name != over.name]
        return jobs_of(yaml.safe_load(over.read_text()) if over.is_file() else {}, *between)

    monkeypatch.setattr(slurm, "listed", listed)

    def run(*options):
        try:
            monkeypatch.setattr("sys.argv", ["entropy-valley", "check", "--profile", "slurm", *options])
            cli.main()
            ended = True
        except SystemExit as end:
            ended = not end.code
        said = capsys.readouterr()
        assert not (site.folder / "submitted").exists()
        return ended, said.out + said.err

    return run


def line(text: str, name: str) -> str:
    return next(one for one in text.splitlines() if one.split(maxsplit=1)[1].startswith(name))


def test_every_different_request_is_a_line_and_is_put_to_sbatch(site, check):
    site.change(("# slurm_account: mine", "  slurm_account: nlp"), ("# gpu_model: h100 ", "  gpu_model: a100 "))
    well, text = check()
    assert well, text
    names = [one[8:34].strip() for one in text.splitlines()]
    on_gpu = {"train", "score, translate", "shard", "latency", "diagnose"}
    assert names[:2] == ["watching jobs", "quota"] and names[-1] == "all other rules" and {*names[2:-1]} == on_gpu
    assert {one[:8].strip() for one in text.splitlines()} == {"ok"}
    first, then = "1 GPU a100, 4 CPU, 48000 MB", "attempt 2: gpu: 1 GPU a100, 4 CPU, 96000 MB"
    both = re.search(f"gpu: {first}, ([0-9]+) minutes; {then}, ([0-9]+) minutes", line(text, "score, translate"))
    assert int(both[1]) + 2 * plan.SECOND == int(both[2]) <= 240  # one after the other
    assert re.search("8 GPU a100, 16 CPU, 200000 MB, .*8 GPU a100, 16 CPU, 200000 MB", line(text, "train"))
    assert "cpu: 1 CPU, 8000 MB, 60 minutes; attempt 2: cpu: 1 CPU, 16000 MB" in line(text, "all other")
    asked = site.asked()
    assert len(asked) == 12  # two attempts of each
    given = "--mem=200000 --cpus-per-task=16 --account=nlp --nodes=1 --gpus=a100:8 --wrap=true"
    assert any(re.fullmatch(f"--test-only --partition=gpu --time=[0-9]+ {given}", one) for one in asked)
    assert "--ntasks=1" in asked[-1]


def test_the_config_says_which_rules_there_are_and_their_gpus(site, check):
    over = site.folder / "over.yaml"
    over.write_text("{adapters: released, decoding: {shards: 4}}")
    _, text = check("--configfile", "config/released.yaml", "over.yaml")
    assert "gpu: 1 GPU, 4 CPU, 48000 MB" in next(one for one in text.splitlines() if "shard" in one)
    assert not {"train", "translate", "merge"} & {*text.replace(",", " ").split()}
    over.write_text("{device: cpu}")
    _, text = check("--configfile", "over.yaml")
    assert "GPU" not in text


SMALL = "idle|96|500000|gpu:a100:4|(null)"
HOURS = ("runtime: 60 ", "runtime: 4h ")
BY_SACCT = ("slurm-status-command: squeue ", "slurm-status-command: sacct ")
NO_ACCOUNT = 'echo "allocation failure: Invalid account or account/partition combination specified" >&2; exit 1'


@pytest.mark.parametrize(
    ("says", "change", "rule", "named"),
    [
        ({"sbatch": NO_ACCOUNT}, None, "all other", "correct slurm_account"),
        ({"sbatch": NO_NODE}, None, "train", "mem_mb or set-threads, correct gpu_model, or lower training.processes"),
        ({"sbatch": NO_NODE, "nodes": SMALL}, None, "train", "a node of it has 4 GPUs: set `training: {processes: 4}`"),
        ({"time": "02:00:00"}, None, "latency", "partition gpu grants 02:00:00: set `max_runtime: 120`"),
        ({"state": "DOWN"}, None, "latency", "partition gpu is DOWN"),
        ({}, HOURS, "", "all other rules: runtime: 4h is not a number"),
        ({"age": 100}, None, "watching", "after 100 s (MinJobAge): set `slurm-status-command: sacct`"),
        ({"sacct": "false"}, BY_SACCT, "watching", "set `slurm-status-command: squeue`"),
    ],
)
def test_what_the_cluster_does_not_grant_is_said_with_the_key_to_change(site, check, says, change, rule, named):
    site.says(**says)
    if change:
        site.change(change)
    well, text = check()
    assert not well
    assert named in (line(text, rule) if rule else text), text


LARGE = "96|500000|gpu:h100:2,gpu:a100:8(S:0-1)|ib,a100_80gb"
REQUESTS = [("# constraint: a100_80gb ", "  constraint: ib&a100_80gb "), ("# gpu_model: h100 ", "  gpu_model: a100 ")]


@pytest.mark.parametrize(
    ("nodes", "waits"),
    [
        (f"drained|{LARGE}", "drained"),
        (f"{IDLE}\ndown*|{LARGE}\nreserved|{LARGE}", "down or reserved"),
        (f"drained|{LARGE}\nidle|{LARGE}", None),  # refused for another reason
        ("drained|96|100000|gpu:a100:8|ib,a100_80gb", None),
        ("drained|8|500000|gpu:a100:8|ib,a100_80gb", None),
        ("drained|96|500000|gpu:a100:4,gpu:h100:8|ib,a100_80gb", None),
        ("drained|96|500000|gpu:a100:8|ib", None),
    ],
)
def test_nodes_that_are_drained_or_down_are_no_error_if_they_have_what_is_requested(site, check, nodes, waits):
    site.change(*REQUESTS)
    site.says(sbatch=NO_NODE, nodes=nodes)
    train = line(check()[1], "train")
    if waits:
        assert train.startswith("ok") and f"; its nodes are {waits} now: jobs will wait" in train
    else:
        assert train.startswith("failed")
        assert re.search("node configuration is not available|a node of it has 4 GPUs", train)


def test_a_later_attempt_may_be_the_one_that_is_refused(site, check):
    site.says(sbatch='case "$*" in *--mem=96000*) echo "Memory specification can not be satisfied" >&2; exit 1;; esac')
    _, text = check()
    assert line(text, "diagnose").startswith("failed")
    assert "attempt 2: gpu: 1 GPU, 4 CPU, 96000 MB" in line(text, "diagnose")
    assert line(text, "train").startswith("ok")


def test_the_partition_is_the_one_whose_limits_a_request_fills_most(site, check):
    large = "  gpu:\n    max_gpu: 4\n    max_runtime: 60\n  large:\n    max_gpu: 8\n    max_runtime: 1-00:00:00\n"
    site.change(("  gpu:\n    max_gpu: 8", large), file="partitions.yaml")
    assert "large: 8 GPU" in line(check()[1], "train")
    site.change(("max_gpu: 8", "max_gpu: 2"), file="partitions.yaml")
    assert "no partition of profiles/slurm/partitions.yaml takes it" in line(check()[1], "train")


def test_without_slurm_or_a_profile_for_it_one_line_says_so(site, check, monkeypatch):
    assert "profiles/default/config.yaml: does not submit to SLURM" in check("--profile", "default")[1]
    assert "none/of/these: is not a profile" in check("--profile", "none/of/these")[1]
    site.change(("profiles/slurm/partitions.yaml", "elsewhere.yaml"))
    assert "slurm-partition-config: [Errno 2] No such file" in check()[1]
    site.change(("elsewhere.yaml", "profiles/slurm/partitions.yaml"))
    silent = site.folder / "bin/scontrol"
    silent.write_text("#!/bin/sh\necho Unable to contact slurm controller >&2; exit 1\n")
    assert "SLURM: does not answer: Unable to contact slurm controller. Run this on" in check()[1]
    monkeypatch.setenv("PATH", "/nowhere")
    assert "Run this on a login node of the cluster" in check()[1]


LUSTRE = """Disk quotas for usr 1000 (uid 1000):
      /scratch2/me
                 {} 0 {} -  {}* 90000 {} 6d23h
"""
LINUX = """Disk quotas for user me (uid 1000):
     Filesystem  blocks   quota   limit   grace   files   quota   limit   grace
      /dev/sdb1  {}  0  {}          {}  90000  {}
"""
GB = 1_000_000


@pytest.mark.parametrize(
    ("program", "text", "numbers", "says"),
    [
        (
            "lfs",
            LUSTRE,
            (GB, 900 * GB, 10, 900_000),
            "ok +quota +[1-9][0-9]+.* GB and .* files are needed, and are left",
        ),
        (
            "lfs",
            LUSTRE,
            (GB, 11 * GB, 10, 900_000),
            "failed +quota +10.2 GB left, .*: let links `results` and `models` lead",
        ),
        ("quota", LINUX, (GB, 900 * GB, 10, 20), "failed +quota +10 files left"),
        ("quota", LINUX, (GB, 0, 10, 0), "ok +quota"),
        ("quota", "no quota{}{}{}{}", (1, 2, 3, 4), "ok +quota +not known"),
    ],
)
def test_a_quota_that_does_not_suffice_is_said(site, check, program, text, numbers, says):
    path = site.folder / "bin" / program
    path.write_text(f"#!/bin/sh\ncat <<END\n{text.format(*numbers)}END\n")
    path.chmod(0o755)
    if program == "quota":
        (site.folder / "bin/lfs").unlink(missing_ok=True)
    well, said = check()
    assert re.search(says, said) and well == says.startswith("ok"), said


def test_jobs_of_an_earlier_run_of_this_folder_are_one_error_with_the_line_that_cancels_them(site):
    def queue(*lines):
        path = site.folder / "bin/squeue"
        path.write_text("#!/bin/sh\n" + "".join(f"echo '{line}'\n" for line in lines))
        path.chmod(0o755)

    here, comment = site.folder, "rule_train_wildcards_en-zh_llada-8b_1"
    queue(f"one|/elsewhere|{comment}", f"head|{here}|(null)")
    slurm.require_empty_queue()
    queue(*[f"one|{here}|{comment}"] * 2, f"two|{here}|rule_set_score_translate")
    with pytest.raises(InputError, match=r"3 jobs of an earlier run .*: scancel --name=one; scancel --name=two"):
        slurm.require_empty_queue()


@pytest.mark.parametrize(
    ("text", "expected"), [("1-00:00:00", 1440), ("04:30:00", 270), ("90:00", 90), ("500G", 512000), (8, 8)]
)
def test_limits_are_read_as_slurm_writes_them(text, expected):
    assert slurm.limit(text) == expected
    assert slurm.limit("UNLIMITED") == slurm.limit("") == float("inf")

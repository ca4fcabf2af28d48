"""What a SLURM site says of itself in SLURM's own formats, and which requests it would refuse."""

from __future__ import annotations

import dataclasses
import math

import pytest

from entropy_valley.errors import InputError
from entropy_valley.experiment.slurm import preflight
from entropy_valley.experiment.slurm.requests import Request, problems
from entropy_valley.experiment.slurm.site import Association, look_up, minutes

CONFIG = """Configuration data as of 2026-11-22T10:00:00
AccountingStorageEnforce = associations,limits,qos,safe
AccountingStorageType   = accounting_storage/slurmdbd
JobRequeue              = 1
MinJobAge               = 300 sec
PreemptMode             = REQUEUE
PreemptType             = preempt/partition_prio

Slurmctld(primary) at login1 is UP
"""
PARTITION = (
    "PartitionName={name} AllowGroups=ALL AllowAccounts={accounts} AllowQos=ALL AllocNodes=ALL Default={default}"
    " QoS={qos} DefaultTime=01:00:00 GraceTime=0 Hidden=NO MaxNodes=UNLIMITED MaxTime={time} MinNodes=0 LLN=NO"
    " MaxCPUsPerNode=UNLIMITED Nodes={name}[01-02] PriorityJobFactor=1 PriorityTier={tier} PreemptMode={preempt}"
    " State={state} TotalCPUs=128 TotalNodes=2 JobDefaults=(null) DefMemPerCPU=1000 MaxMemPerNode={mem}"
    " TRES=cpu=128,mem=2000G,node=2,billing=128,gres/gpu=16\n"
)
USUAL = dict(
    accounts="ALL", default="NO", qos="N/A", time="1-00:00:00", tier=1, preempt="OFF", state="UP", mem="UNLIMITED"
)
NODES = """cpu|cpu01|64|256000|(null)|(null)
gpu|gpu01|128|1024000|gpu:a100:8(S:0-7),nvme:1|a100,nvlink
gpu|gpu02|64|512000|gpu:V100:2,gpu:v100:2|v100
"""
USERS = "nlp||gpu_long,normal|normal\nPhysics|gpu|normal|normal\n"
QUALITIES = """normal|1-00:00:00||||
gpu_long|3-00:00:00|cpu=64,gres/gpu=4,mem=500G|normal|requeue|PartitionTimeLimit
boss|||normal,gpu_long|cluster|
"""
WHAT = Request("train", "gpu", 240, 200000, 16, 8, account="nlp")


def site(config=CONFIG, users=USERS, qualities=QUALITIES, nodes=NODES, sacct="", **partition):
    """A site of two partitions; ``partition`` changes that with GPUs."""
    lines = PARTITION.format(name="cpu", **USUAL | {"default": "YES"}) + PARTITION.format(
        name="gpu", **USUAL | partition
    )
    answers = {"config": config, "partition": lines, "sinfo": nodes, "user=me": users, "qos": qualities, "sacct": sacct}

    def ask(command):
        return next(text for key, text in answers.items() if key in command)

    return look_up(ask, "me")


def said(site, request=WHAT, **changes):
    return " ".join(str(error) for error in problems(site, dataclasses.replace(request, **changes)))


def test_what_slurm_prints_is_read():
    found = site(time="2-12:30:00", mem="900000")
    gpu = found.partitions["gpu"]
    assert (gpu.minutes, gpu.mem_mb, found.partitions["cpu"].mem_mb) == (3630, 900000, math.inf)
    assert [node.gpus for node in gpu.nodes] == [{"a100": 8}, {"v100": 4}]
    assert gpu.nodes[0].features == {"a100", "nvlink"}
    assert found.default_partition == "cpu"
    assert found.associations[0] == Association("nlp", "", frozenset({"gpu_long", "normal"}), "normal")
    assert found.qualities["gpu_long"].tres == {"cpu": 64, "gres/gpu": 4, "mem": 512000}
    assert found.settings["MinJobAge"] == "300 sec"


def test_a_node_without_types_of_gpus():
    assert site(nodes="gpu|g1|16|1000|gpu:8|(null)\n").partitions["gpu"].nodes[0].gpus == {"": 8}


@pytest.mark.parametrize(
    ("text", "expected"), [("1-00:00:00", 1440), ("04:30:00", 270), ("UNLIMITED", math.inf), ("", math.inf)]
)
def test_time_limits(text, expected):
    assert minutes(text) == expected


def test_a_site_that_answers_nothing_refuses_nothing():
    silent = look_up(lambda command: None, "me")
    assert said(silent) == ""
    assert preflight.status_command(silent, "sacct", 40) == "squeue"


def test_a_request_that_is_granted():
    assert said(site()) == ""
    assert said(site(), gpu_model="a100", constraint="a100&nvlink", qos="normal") == ""


@pytest.mark.parametrize(
    ("of_site", "of_request", "named"),
    [
        ({}, {"account": "mine"}, ["slurm_account: me has no account mine; there is nlp, physics"]),
        ({}, {"partition": None}, ["rule train", "8 GPUs, 16 CPUs, 200000 MB, 240 minutes", "partitions.yaml takes"]),
        ({}, {"partition": "GPU"}, ["no partition GPU; it has cpu, gpu"]),
        ({"state": "DOWN"}, {}, ["gpu is in state DOWN"]),
        ({"accounts": "physics"}, {}, ["partition gpu does not admit account nlp"]),
        ({}, {"qos": "fast"}, ["qos: no QOS fast; there is boss, gpu_long, normal"]),
        ({}, {"qos": "boss"}, ["me may not use QOS boss, but gpu_long, normal"]),
        ({"time": "04:00:00"}, {"minutes": 300}, ["requests 300 minutes, partition gpu grants 240", "runtime: 240"]),
        ({"time": "04:00:00"}, {"minutes": 300, "group": True}, ["group train", "group-components"]),
        ({"qos": "gpu_long"}, {}, ["requests gres/gpu=8, QOS gpu_long grants a job 4"]),
        ({}, {"minutes": 1500}, ["partition gpu grants 1440", "QOS normal grants 1440"]),
        ({}, {"mem_mb": 1100000, "attempt": 2}, ["rule train, attempt 2", "1100000 MB", "at most 1024000", "mem_mb"]),
        ({"mem": "150000"}, {}, ["at most 150000"]),
        ({}, {"partition": "cpu"}, ["requests 8 GPUs, a node of partition cpu grants at most 0"]),
        ({}, {"gpu_model": "v100"}, ["requests 8 GPUs", "at most 4"]),
        ({}, {"gpu_model": "h100"}, ["gpu_model", "GPU of type h100; there is a100, v100"]),
        ({}, {"gpus": 0, "gpu_model": "a100"}, ["gpu_model a100, but no GPU"]),
        ({}, {"constraint": "ib"}, ["the feature ib; there is a100, nvlink, v100"]),
        ({}, {"cpus": 200}, ["requests 200 CPUs", "at most 128", "set-threads"]),
    ],
)
def test_a_request_that_is_refused_names_itself_the_limit_and_the_remedy(of_site, of_request, named):
    text = said(site(**of_site), **of_request)
    assert [part for part in named if part not in text] == [], text


def test_a_qos_may_lift_the_time_limit_of_the_partition():
    assert said(site(time="01:00:00"), gpus=4, qos="gpu_long") == ""


def test_limits_of_accounting_count_only_where_they_are_enforced():
    lax = CONFIG.replace("associations,limits,qos,safe", "none")
    assert said(site(config=lax, qos="gpu_long"), qos="boss") == ""


def preempted(config="preempt/partition_prio", nodes=NODES + "cpu|gpu01|128|1024000|gpu:a100:8|(null)\n", **partition):
    """A site where jobs on the CPU partition go first."""
    found = site(config=CONFIG.replace("preempt/partition_prio", config), nodes=nodes, **partition)
    first = dataclasses.replace(found.partitions["cpu"], tier=10)
    return dataclasses.replace(found, partitions={**found.partitions, "cpu": first})


def test_a_partition_that_cancels_preempted_jobs_is_refused():
    assert "partition gpu: cancels jobs" in said(preempted(preempt="CANCEL"))
    assert "It must be PreemptMode=REQUEUE" in said(preempted(preempt="CANCEL"))
    assert said(preempted(preempt="REQUEUE")) == ""
    assert said(preempted(preempt="CANCEL", nodes=NODES)) == ""  # the other partition has other nodes
    assert said(preempted("preempt/none", preempt="CANCEL")) == ""


def test_a_qos_that_cancels_preempted_jobs_is_refused():
    by_qos = CONFIG.replace("partition_prio", "qos")
    cancels = QUALITIES.replace("requeue", "cancel")
    assert "QOS gpu_long: cancels jobs" in said(site(by_qos, qualities=cancels), gpus=4, qos="gpu_long")
    assert said(site(by_qos), gpus=4, qos="gpu_long") == ""
    cluster_wide = by_qos.replace("REQUEUE", "CANCEL")
    assert "QOS normal: cancels jobs" in said(site(cluster_wide, qualities=QUALITIES.replace("normal|1-", "normal|2-")))


def test_all_problems_are_said_at_once_and_those_of_a_rule_in_its_first_attempt():
    grown = [dataclasses.replace(WHAT, mem_mb=size, attempt=at) for at, size in enumerate((5e5, 2e6, 4e6), 1)]
    with pytest.raises(InputError) as caught:
        preflight.check(site(), [*grown, dataclasses.replace(WHAT, rule="comet", minutes=2000)], lambda request: None)
    text = str(caught.value)
    assert "attempt 2: requests 2000000 MB" in text
    assert "attempt 3" not in text
    assert "rule comet: requests 2000 minutes" in text


def test_what_only_sbatch_knows_is_said_in_its_words():
    asked = []

    def refused(request):
        asked.append(request.rule)
        return "error: ask for a project"

    with pytest.raises(InputError, match=r"rule train: requests 8 GPUs, .*sbatch says: error: ask for a project"):
        preflight.check(site(), [WHAT], refused)
    with pytest.raises(InputError):
        preflight.check(site(), [dataclasses.replace(WHAT, account="mine")], refused)
    assert asked == ["train"]


@pytest.mark.parametrize(
    ("status", "words", "expected"),
    [
        (1, "allocation failure: Invalid account or account/partition combination specified", True),
        (1, "sbatch: error: job_submit: no project\nallocation failure: Unspecified error", True),
        (1, "allocation failure: Requested nodes are busy", False),
        (1, "allocation failure: Required node not available (down, drained or reserved)", False),
        (0, "sbatch: Job 4 to start at 2026-11-22T10:13:06 using 1 processors on nodes n1 in partition gpu", False),
    ],
)
def test_what_sbatch_would_take_at_another_time_is_no_refusal(tmp_path, status, words, expected):
    (tmp_path / "sbatch").write_text(f"#!/bin/sh\necho '{words}' >&2\nexit {status}\n")
    (tmp_path / "sbatch").chmod(0o755)
    assert bool(preflight.refusal([str(tmp_path / "sbatch")])) == expected


def test_jobs_are_watched_by_squeue_where_sacct_does_not_answer():
    assert preflight.status_command(site(), "sacct", 40) == "sacct"
    assert preflight.status_command(site(sacct=None), "sacct", 40) == "squeue"
    with pytest.raises(InputError, match=r"squeue forgets finished jobs after 60 s .*MinJobAge of at least 180"):
        preflight.status_command(site(CONFIG.replace("300 sec", "60 sec"), sacct=None), "sacct", 40)


def test_a_rule_whose_jobs_differ_makes_no_array():
    alike = [dataclasses.replace(WHAT, rule="train"), dataclasses.replace(WHAT, rule="train", mem_mb=9, attempt=2)]
    preflight.check_arrays(["train"], alike)
    differing = [*alike, dataclasses.replace(WHAT, gpus=0, partition="cpu")]
    with pytest.raises(
        InputError, match=r"jobs of train request different things .*partition cpu; 8 GPUs.*partition gpu"
    ):
        preflight.check_arrays(["train"], differing)
    with pytest.raises(InputError):
        preflight.check_arrays(["all"], differing)

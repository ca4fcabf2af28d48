"""Options of Snakemake, and workflows around this one, do here what Snakemake's manual says."""

from __future__ import annotations

import os
import random
import re
import signal

import pytest
import yaml
from workspace import ROOT, STUB, Workspace, by_rule, sets

from entropy_valley.config.expand import overlay
from entropy_valley.config.load import merge

DIRECTIONS = ("en-zh", "en-de")
CONFIG = {
    "check": False,
    "results": "results",
    "matrix": {"backbones": ["llada-tiny"], "directions": list(DIRECTIONS), "seeds": [1, 2, 3]},
    "instruct": {"backbones": []},
    "autoregressive": {"backbones": []},
    "valley": {"backbones": []},
    "tables": {"studies": []},
}
RUNS = {f"{direction}.llada-tiny.{seed}" for direction in DIRECTIONS for seed in (1, 2, 3)}
MAIN = "results/tables/main.tex"  # reads all six sets
TABLE = {"table main"}
SCORES = {f"score {run}.matrix" for run in RUNS}
TRANSLATIONS = {f"translate {run}.matrix" for run in RUNS}
FAILING, FAILED = "en-de.llada-tiny.2", "results/en-de/llada-tiny/seed2/matrix"
OTHERWISE = {"decoding": {"precision": "bfloat16"}}  # all sets are translated anew

# Writes what its job depends on, so that the results of two runs can be compared, and takes a moment for it.
SLOW = """
import time
from pathlib import Path

for path in snakemake.output:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w") as file:
        for text in snakemake.params.spec, path:
            file.write(text)
            file.flush()
            time.sleep(0.1)
"""
FAILS = f"{STUB}\nif {FAILED!r} in snakemake.output[0]:\n    raise SystemExit(1)\n"


def write_scripts(workspace, text, names="*"):
    for script in (workspace.folder / "workflow/scripts").glob(f"{names}.py"):
        script.write_text(text)


@pytest.fixture(scope="module")
def fresh(tmp_path_factory):
    """Six runs of one backbone, nothing done: for dry runs only."""
    return Workspace(tmp_path_factory.mktemp("fresh"), "config/demo.yaml", CONFIG)


@pytest.fixture(scope="module")
def finished_main(tmp_path_factory):
    """The same with all that the main table needs: for dry runs only."""
    workspace = Workspace(tmp_path_factory.mktemp("finished_main"), "config/demo.yaml", CONFIG)
    workspace.run("--cores", "2", MAIN)
    return workspace


@pytest.fixture
def done(finished_main, tmp_path):
    """A copy of it, for tests that change something."""
    return finished_main.copied(tmp_path / "done")


def test_until_a_rule_plans_it_and_what_it_needs(fresh):
    planned = by_rule(fresh.planned("--until", "translate"))
    assert planned["translate"] == planned["train"] == 6
    assert planned.keys() <= {"translate", "train", "corpus", "pretrain", "testset"}


def test_omitting_a_rule_omits_what_follows_and_nothing_else(fresh):
    everything, planned = fresh.planned(last=True).keys(), fresh.planned("--omit-from", "score", last=True).keys()
    assert planned < everything and planned >= TRANSLATIONS
    assert {name for name in everything - planned if name.startswith("score")} == SCORES
    assert not TABLE & planned and "all" not in planned


def test_a_batch_of_all_plans_a_part_of_its_inputs(fresh):
    """The last batch takes only what the others have made."""
    first, second = (fresh.planned("--batch", f"all={number}/3", last=True).keys() for number in (1, 2))
    assert "all" not in first | second and first | second < fresh.planned(last=True).keys()
    assert first - second and second - first


def test_forcing_a_rule_repeats_it_and_what_follows(finished_main):
    assert finished_main.planned(MAIN, "-R", "score").keys() == SCORES | TABLE
    assert finished_main.planned(MAIN, "-R", "translate").keys() == TRANSLATIONS | SCORES | TABLE


def test_by_times_alone_no_param_repeats_a_job_and_a_newer_input_does(done):
    triggers = ("--rerun-triggers", "mtime")
    assert done.planned(MAIN, over=OTHERWISE).keys() == TRANSLATIONS | SCORES | TABLE
    assert not done.planned(MAIN, *triggers, over=OTHERWISE)
    (done.folder / "results/corpus/en-zh/test/grammar.jsonl").write_text("{}")
    made = {run for run in RUNS if "en-zh" in run}
    assert {name for name in done.planned(MAIN, *triggers) if name.startswith("translate")} == {
        f"translate {run}.matrix" for run in made
    }


def test_by_code_an_edit_of_a_script_repeats_its_rule(done):
    write_scripts(done, f"{STUB}# a word\n", "score")
    assert done.planned(MAIN, "--rerun-triggers", "code").keys() == SCORES | TABLE


def test_touch_takes_results_as_they_are(done):
    (done.folder / "results/corpus/en-zh/test/grammar.jsonl").write_text("{}")
    assert done.planned(MAIN).keys() >= TABLE
    done.run("--touch", "--cores", "1", MAIN)
    assert not done.planned(MAIN)


def test_the_summary_names_the_rule_and_the_state_of_each_file(finished_main):
    def states(over=None):
        rows = [line.split("\t") for line in finished_main.run("--summary", MAIN, over=over).splitlines()]
        return {row[0]: (row[2], row[-1]) for row in rows if len(row) > 5}

    scores = f"{FAILED}/scores.jsonl"
    assert states()[scores] == ("score", "no update")
    assert states(OTHERWISE)[scores] == ("score", "update pending")
    assert states(OTHERWISE)["results/corpus/en-zh/train.jsonl"] == ("corpus", "no update")


def test_the_report_has_the_stages_of_the_gpu(finished_main):
    finished_main.run("--report", "report.html", MAIN)
    text = (finished_main.folder / "report.html").read_text()
    assert {"train", "translate", "score", "table"} <= set(re.findall(r'"rule": ?"(\w+)"', text))


def test_without_its_metadata_a_result_is_taken_as_it_is(done):
    done.run("--cleanup-metadata", f"{FAILED}/translations.jsonl", f"{FAILED}/translations.json")
    planned = done.planned(MAIN, over=OTHERWISE).keys()
    assert planned == TRANSLATIONS - {f"translate {FAILING}.matrix"} | SCORES | TABLE


def test_from_another_folder_jobs_run_in_the_given_one(fresh, tmp_path):
    configs = [str(fresh.folder / name) for name in fresh.config_files()]
    elsewhere = Workspace.__new__(Workspace)
    elsewhere.folder, elsewhere.configs = tmp_path, configs
    (tmp_path / "results_of").mkdir()
    target = "results/corpus/en-zh/test/grammar.jsonl"
    elsewhere.run("-s", str(fresh.folder / "Snakefile"), "--directory", "results_of", "--cores", "1", target)
    assert (tmp_path / "results_of" / target).is_file() and not (fresh.folder / target).exists()


MODULE = """
configfile: "outer.yaml"

module ev:
    snakefile: "Snakefile"
    config: config
    PREFIX

use rule * from ev as ev_*

rule mine:
    input: "ROOTtables/main.tex"
    output: "mine.txt"
    shell: "cp {input} {output}"
"""


@pytest.mark.parametrize("prefix", ["", "sub"])
def test_as_a_module_its_jobs_run_below_the_prefix(tmp_path, prefix):
    workspace = Workspace(tmp_path)
    config = overlay(merge([ROOT / "config/demo.yaml"]), CONFIG | {"matrix": CONFIG["matrix"] | {"seeds": [1]}})
    (tmp_path / "outer.yaml").write_text(yaml.safe_dump(config))
    root = f"{prefix}/results/" if prefix else "results/"
    text = MODULE.replace("PREFIX", f'prefix: "{prefix}"' if prefix else "").replace("ROOT", root)
    (tmp_path / "outer.smk").write_text(text)
    outer = ("-s", "outer.smk")
    workspace.run(*outer, "--cores", "2", "mine")
    assert (tmp_path / root / "en-zh/llada-tiny/seed1/matrix/scores.jsonl").is_file()
    assert not (prefix and (tmp_path / "results").exists())
    assert not workspace.planned(*outer, "mine")


def test_a_rule_of_the_users_loads_no_model_twice(fresh):
    (fresh.folder / "mine.smk").write_text(
        'include: "Snakefile"\n'
        "rule mine:\n"
        "    input: [one.scores(R) for one in SETS.all]\n"
        '    output: "mine.txt"\n'
        '    shell: "cat {input} > {output}"\n'
    )
    planned = fresh.planned("-s", "mine.smk", "mine.txt")
    assert by_rule(planned)["translate"] == by_rule(planned)["score"] == 6
    assert max(planned.values()) == 1 and "mine" in planned


def test_a_failed_set_blocks_itself_alone(done):
    """And is planned afterwards with all that follows, with an old result or none."""
    failed = sets([FAILING]) | TABLE
    for path in [*done.folder.glob("results/*/*/seed*/matrix/*"), *done.folder.glob("results/tables/*")]:
        path.unlink()
    for over in (None, OTHERWISE):
        write_scripts(done, FAILS, "translate")
        done.run("--cores", "2", "--keep-going", MAIN, over=over, fails=True)
        assert done.planned(MAIN, over=over).keys() == failed
        write_scripts(done, STUB, "translate")
        done.run("--cores", "2", MAIN, over=over)
        assert not done.planned(MAIN, over=over)


@pytest.mark.slow
@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGINT], ids=["killed", "ctrl-c"])
def test_a_run_that_is_stopped_at_random_moments_goes_on_with_what_is_missing(tmp_path, end):
    """Also one that replaces finished results. In the end each is as a run makes it that nobody stops."""
    chance, one_seed = random.Random(int(end)), {"matrix": CONFIG["matrix"] | {"seeds": [1]}}
    stopped = Workspace(tmp_path, "config/demo.yaml", CONFIG, one_seed)
    write_scripts(stopped, SLOW)
    undisturbed = stopped.copied(tmp_path / "undisturbed")
    undisturbed.run("--cores", "2", MAIN)
    for over in (None, OTHERWISE):
        before = stopped.planned(MAIN, over=over).keys()
        done = stop(stopped.start("--cores", "2", MAIN, over=over), end, chance.randint(1, len(before) - 2))
        stopped.run("--unlock", MAIN)
        planned = stopped.planned(MAIN, over=over).keys()
        assert planned <= before - done
        assert len(before - done - planned) <= 2  # those that ended in the moment of the signal
    stopped.run("--cores", "2", MAIN)
    assert contents(stopped) == contents(undisturbed)
    assert not stopped.planned(MAIN)


def stop(process, end, jobs):
    """Send a signal to Snakemake and its jobs when so many of these have ended; their names."""
    done = set()
    while len(done) < jobs and (line := process.stdout.readline()):
        done |= finished(line)
    os.killpg(process.pid, end)
    return done | finished(process.communicate()[0])


def finished(said):
    """The jobs that have ended by what a run says, as a plan names them."""
    return {name.replace(".seed", ".") for name in re.findall(r" done: (.*) \(", said)}


def contents(workspace):
    """The text of each result."""
    root = workspace.folder / "results"
    of_runs = ("logs", "benchmarks", "work")
    files = {path.relative_to(root): path for path in root.rglob("*") if path.is_file()}
    return {name: path.read_text() for name, path in files.items() if name.parts[0] not in of_runs}

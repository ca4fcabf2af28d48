"""The commands of README and docs: each is run or planned here, or needs another machine."""

import itertools
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml
from workspace import ROOT, Workspace

from entropy_valley.experiment import cli

GUIDES = ["README.md", "CONTRIBUTING.md", "docs/extending.md", "docs/results.md", "docs/running.md"]
PAGES = [*GUIDES, "docs/protocol.md", "docs/translate.md", "docs/tutorial.md"]
SIMPLE = (".", "git", "echo", "export", "mkdir", "ln", "head", "pre-commit")  # nothing of ours
ELSEWHERE = ("hf", "pip", "docker", "sinfo", "squeue", "sbatch", "quota", "flock", "rsync")  # network, cluster
TUTORIAL = "docs/tutorial.md"


class Command(NamedTuple):
    """A line of a block, its words without its comment, and the config that stands before it on its page."""

    page: str
    line: str
    words: tuple[str, ...]
    config: str


def text(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def commands(page: str) -> list[Command]:
    written, config = [], ""
    for language, block in re.findall(r"^ *```(\w*)\n(.*?)^ *```", text(page), re.MULTILINE | re.DOTALL):
        if language == "yaml":
            config = block
        if language in ("", "bash"):
            lines = block.replace("\\\n", " ").splitlines()
            written += [Command(page, line, tuple(shlex.split(line, comments=True)), config) for line in lines]
    return [one for one in written if one.words]


ALL = [command for page in PAGES for command in commands(page)]
SNAKEMAKE = [command for command in ALL if command.words[0] == "snakemake"]
OURS = [command for command in ALL if "entropy-valley" in command.words and command.words[0] not in ("git", "docker")]


def once(these: list[Command]) -> dict[str, Command]:
    """Without repetitions, by their words."""
    return {" ".join(one.words): one for one in reversed(these)}


@pytest.fixture(scope="module")
def papers(tmp_path_factory):
    """A seed of the paper's matrix, nothing done yet; the classes that docs/extending.md and the tutorial show are
    there."""
    workspace = Workspace(tmp_path_factory.mktemp("paper"))
    config, studies = workspace.folder / "config.yaml", "studies: [full_pareto]\n\nsources:"
    one_seed = config.read_text().replace("  seeds: [1, 2, 3] ", "  seeds: [1] ")
    config.write_text(re.sub(r"studies: .*?\n\nsources:", studies, one_seed, flags=re.DOTALL))
    for page in ("docs/extending.md", TUTORIAL):
        write_classes(workspace.folder, page)
    return workspace


def write_classes(folder: Path, page: str) -> None:
    for name, code in re.findall(r"```python\n# (\w+\.py)(.*?)```", text(page), re.DOTALL):
        (folder / name).write_text(f"#{code}", encoding="utf-8")


def test_every_command_is_tried_here_or_needs_another_machine():
    others = [one for one in ALL if one not in SNAKEMAKE + OURS and one.words[0] not in ("make", *SIMPLE, *ELSEWHERE)]
    assert [one for one in others if one.page != TUTORIAL] == [] and len(ALL) > 50


@pytest.mark.parametrize("command", once(SNAKEMAKE))
def test_snakemake_plans_what_the_pages_say(papers, command):
    command = once(SNAKEMAKE)[command]
    if "--report" in command.words:  # it has no plan
        assert "marked for report but does not exist" in papers.run(*command.words[1:], fails=True)
        return
    (papers.folder / "config/mine.yaml").write_text(command.config or "{}", encoding="utf-8")
    text = papers.dry_run(*command.words[1:])
    assert "--unlock" in command.words or re.search(r"^all +\d+ ", text, re.MULTILINE), text


@pytest.mark.parametrize("name", once(OURS))
def test_our_commands_take_the_options_that_the_pages_give(name):
    words = once(OURS)[name].words
    options = words[words.index("entropy-valley") + 1 :]
    cli.parser().parse_args([*itertools.takewhile(lambda word: word not in ("<", ">"), options)])


@pytest.mark.parametrize("line", once([one for one in ALL if one.words[0] == "make"]))
def test_make_knows_its_targets(line):
    command = [*line.split(), "--dry-run"]
    output = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert all(f"whl/{build}" in output for build in re.findall("CUDA=(\\w+)", line))


@pytest.mark.parametrize("page", PAGES)
def test_the_files_that_a_page_names_are_there(page):
    named = set(re.findall(r"`((?:config|profiles|tests|docs|envs|workflow)/[\w./-]*)`", text(page)))
    assert [name for name in named - {"config/mine.yaml"} if not (ROOT / name).exists()] == []


LINKED = [str(path.relative_to(ROOT)) for folder in ("", "docs", "config") for path in (ROOT / folder).glob("*.md")]


def headings(path: Path) -> set[str]:
    """The anchors of a page, as GitHub makes them of its headings."""
    titles = re.findall(r"^#+ (.*)", re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL), re.M)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", LINKED)
def test_links_lead_to_files_and_headings(page):
    broken = []
    for link in re.findall(r"\]\(([^)\s]+)\)", text(page)):
        name, _, heading = link.partition("#")
        path = (ROOT / page).parent / name if name else ROOT / page
        if "//" not in link and not (path.exists() and (not heading or heading in headings(path))):
            broken.append(link)
    assert broken == []


@pytest.mark.slow
@pytest.mark.cluster  # a minute: it fine-tunes, decodes and scores
def test_the_tutorial_runs_as_written(tmp_path):
    """All its commands over a smaller demo; `make demo` makes only what the tutorial takes from it."""
    workspace = Workspace(tmp_path, real=True)
    shrink_the_demo(workspace)
    (tmp_path / "src").symlink_to(ROOT / "src")
    targets = ["comet/comet.json", "corpus/en-de/train.jsonl", "corpus/en-de/test/grammar.jsonl"]
    workspace.run("--cores", "2", "--workflow-profile", "demo", *(f"results/demo/{name}" for name in targets))
    write_classes(tmp_path, TUTORIAL)
    (tmp_path / "config/mine.yaml").write_text(commands(TUTORIAL)[-1].config, encoding="utf-8")
    lines = [one.line for one in commands(TUTORIAL) if one.words[0] not in ("make", ".")]
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    ended = [
        subprocess.run(["bash", "-ec", line], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
        for line in lines
    ]
    assert any("\nev " in one.stdout and "\nconfident " in one.stdout for one in ended)
    assert len((tmp_path / "results/mine/corpus/en-de/train.jsonl").read_text().splitlines()) < 500


def shrink_the_demo(workspace: Workspace) -> None:
    """Give config/demo.yaml the sizes of config/smallest.yaml, for the demo's own directions and LLaDA-tiny."""
    sizes = yaml.safe_load((ROOT / "config/smallest.yaml").read_text())
    demo = yaml.safe_load((ROOT / "config/demo.yaml").read_text())
    demo["corpus"] |= {"train": 700, "dev": 40}
    demo["training"] |= sizes["training"]
    demo["scoring"]["comet"]["training"] |= sizes["scoring"]["comet"]["training"]
    (workspace.folder / "config/demo.yaml").write_text(yaml.safe_dump(demo), encoding="utf-8")

"""The lock, and the conda environments of the stages, which take their pins from it."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
ENVIRONMENTS = {path.stem: path.read_text() for path in (ROOT / "envs").iterdir()}


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", re.match(r"[\w.-]+", name)[0]).lower()


def pins(text: str) -> dict[str, str]:
    return {canonical(name): version for name, version in re.findall(r"([A-Za-z0-9._\[\]-]+)==([^\s\",]+)", text)}


LOCK = pins((ROOT / "requirements.lock").read_text())
TEXT = (ROOT / "pyproject.toml").read_text()
PROJECT = tomllib.loads(TEXT)["project"]
LISTS = PROJECT["optional-dependencies"]


def test_every_environment_belongs_to_a_stage():
    rules = "".join(path.read_text() for path in (ROOT / "workflow/rules").glob("*.smk"))
    assert ENVIRONMENTS.keys() == set(re.findall(r"envs/(\w+)\.yaml", rules))


def test_environments_have_the_pins_of_the_lock_and_together_every_package_of_jobs():
    expected, everything = LOCK | {"torch": pins(TEXT)["torch"]}, set()
    for text in ENVIRONMENTS.values():
        here = pins("\n".join(yaml.safe_load(text)["dependencies"][-1]["pip"]))
        assert here == {name: expected[name] for name in here}
        everything |= here.keys()
    direct = {canonical(line) for line in (*PROJECT["dependencies"], *LISTS["workflow"])}
    assert {name for name in direct - everything if "snakemake" not in name} == set()


def test_the_lock_holds_the_projects_pins_and_no_torch():
    assert "torch" not in LOCK
    assert {name: version for name, version in pins(TEXT).items() if name != "torch"}.items() <= LOCK.items()
    wanted = {canonical(line) for line in (*PROJECT["dependencies"], *LISTS["workflow"], *LISTS["test"])}
    assert wanted - {"torch"} <= LOCK.keys()


def test_the_lock_is_whole_and_portable():
    text = (ROOT / "requirements.lock").read_text()
    entries = re.split(r"\n(?=\w)", text.split("\n", 1)[1])
    assert all("--hash=sha256:" in entry for entry in entries)
    assert not re.search(r"://|file:|^-", text, flags=re.MULTILINE)

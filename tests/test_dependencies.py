"""What DEPENDENCIES.md and LICENCES.md say of the packages is what the code imports and the lock pins; and the conda
environments of the stages, which take their pins from it."""

import re
import tomllib
from pathlib import Path

import licences
import pytest
import yaml

ROOT = licences.ROOT
SOURCES = [path for folder in ("src", "workflow") for path in (ROOT / folder).rglob("*.py")]
MODULES = {"pyyaml": "yaml", "unbabel-comet": "comet"}  # of packages with another name
TABLE = (ROOT / "DEPENDENCIES.md").read_text(encoding="utf-8").split("## ")[1]
ROWS = dict(re.findall(r"^\| ([\w.-]+) \| [^|]+ \| ([^|]+) \|$", TABLE, re.MULTILINE))


TEXT = (ROOT / "pyproject.toml").read_text()
PROJECT = tomllib.loads(TEXT)["project"]
LISTS = PROJECT["optional-dependencies"]


def direct() -> set[str]:
    """The packages that `pyproject.toml` asks for, but those of tests."""
    further = [lines for extra, lines in LISTS.items() if extra != "test"]
    return {re.match(r"[\w.-]+", line)[0] for line in sum(further, PROJECT["dependencies"])}


def imports(path: Path, package: str) -> bool:
    module = MODULES.get(package, package)
    return bool(re.search(rf"^ *(import|from) {module}\b", path.read_text(encoding="utf-8"), re.MULTILINE))


def test_every_direct_dependency_has_a_row():
    assert direct() == ROWS.keys() - {"package"}


@pytest.mark.parametrize("package", sorted(direct()))
def test_a_package_is_imported_where_its_row_says_or_is_a_program(package):
    if re.match("program|plugin|pin", ROWS[package]):
        return
    files = [ROOT / "src/entropy_valley" / name for name in re.findall(r"`([^`]+\.py)`", ROWS[package])]
    assert files and all(imports(path, package) for path in files)


def test_every_locked_package_is_listed_with_its_version_and_licence():
    listed = licences.PAGE.read_text(encoding="utf-8")
    assert listed == licences.page(), "run `make licences`"
    locked = re.findall(r"^(\S+)==(\S+)", (ROOT / "requirements.lock").read_text(), re.MULTILINE)
    assert licences.pinned().items() - set(locked) == {("torch", licences.pinned()["torch"])}
    assert len(licences.pinned()) == len(locked) + 1 and "not stated" not in listed


# --- The lock, and the conda environments of the stages.


ENVIRONMENTS = {path.stem: path.read_text() for path in (ROOT / "envs").iterdir()}


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", re.match(r"[\w.-]+", name)[0]).lower()


def pins(text: str) -> dict[str, str]:
    return {canonical(name): version for name, version in re.findall(r"([A-Za-z0-9._\[\]-]+)==([^\s\",]+)", text)}


LOCK = pins((ROOT / "requirements.lock").read_text())


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

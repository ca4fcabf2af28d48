"""The conda environments of the stages against the lock, and against what the stages import."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import grimp
import pytest
import yaml

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "entropy_valley"
RULES = "\n".join(path.read_text() for path in (ROOT / "workflow" / "rules").glob("*.smk"))
IMPORTS = grimp.build_graph(
    "entropy_valley", include_external_packages=True, exclude_type_checking_imports=True, cache_dir=None
)


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name.split("[")[0]).lower()


def pins(text: str) -> dict[str, str]:
    return {canonical(name): version for name, version in re.findall(r"([A-Za-z0-9._\[\]-]+)==([^\s\",]+)", text)}


def environment(stage: str) -> dict[str, str]:
    content = yaml.safe_load((ROOT / "envs" / f"{stage}.yaml").read_text())
    return pins("\n".join(content["dependencies"][-1]["pip"]))


LOCK = pins((ROOT / "requirements.lock").read_text())
PROJECT = pins((ROOT / "pyproject.toml").read_text())
PARTS = {"pydantic_core": "pydantic"}  # of a distribution that pins it itself
OPTIONAL = {"wandb", "bitsandbytes"}  # the user's own choice to install, refused with one error where it is missing
DISTRIBUTIONS = metadata.packages_distributions()  # reads what every distribution holds: seconds


# The rooms whose functions a stage runs. Of all others it reads names and settings: what their functions import is not
# needed.
RUN = {
    "models": ("model", "training", "data", "lengths", "decoding", "hub.py", "files.py"),
    "comet": ("scoring", "demo"),  # and the demo's pre-training
    "workflow": (
        *("stats", "human_evaluation", "tables", "config", "data", "demo"),
        *("hub.py", "files.py", "results.py"),
    ),
}
SCRIPTS: dict[str, set[str]] = {}
for rule in re.split(r"^rule ", RULES, flags=re.MULTILINE):
    for stage in re.findall(r"envs/(\w+)\.yaml", rule):
        SCRIPTS.setdefault(stage, set()).update(re.findall(r"\.\./scripts/(\w+)\.py", rule))


def test_every_environment_belongs_to_a_stage():
    assert {path.stem for path in (ROOT / "envs").iterdir()} == SCRIPTS.keys()


@pytest.mark.parametrize("stage", SCRIPTS)
def test_pins_are_the_locks(stage):
    expected = {**LOCK, "torch": PROJECT["torch"]}
    assert environment(stage) == {name: expected[name] for name in environment(stage)}


@pytest.mark.parametrize("stage", SCRIPTS)
def test_what_a_stage_imports_is_in_its_environment(stage):
    assert SCRIPTS[stage]
    needed = {name for script in SCRIPTS[stage] for name in third_party(script, RUN.get(stage))}
    assert needed - environment(stage).keys() == set()


def third_party(script: str, rooms: tuple[str, ...] | None) -> set[str]:
    """Distributions that a script imports, itself or through the package; inside functions only in ``rooms``."""
    todo, seen = imported(ROOT / "workflow" / "scripts" / f"{script}.py"), set()
    while todo:
        module = todo.pop()
        if module not in seen:
            seen.add(module)
            todo |= {module.rpartition(".")[0]} if "." in module else set()  # importing a.b runs a/__init__.py, too
            todo |= package_imports(module, rooms)
    names = {module.split(".")[0] for module in seen} - sys.stdlib_module_names - {"entropy_valley"}
    return {canonical(PARTS.get(name) or DISTRIBUTIONS[name][0]) for name in names - OPTIONAL}


def package_imports(module: str, rooms: tuple[str, ...] | None) -> set[str]:
    if module not in IMPORTS.modules:
        return set()
    path = ROOT.joinpath("src", *module.split("."))
    if not module.startswith("entropy_valley.") or rooms is None or path.relative_to(PACKAGE).parts[0] in rooms:
        return IMPORTS.find_modules_directly_imported_by(module)
    return imported(path / "__init__.py" if path.is_dir() else path.with_suffix(".py"), inside_functions=False)


def imported(path: Path, inside_functions: bool = True) -> set[str]:
    """What a file names in its imports: modules, and what it takes from them, which may be modules too."""
    tree = ast.parse(path.read_text())
    nodes = list(ast.walk(tree)) if inside_functions else tree.body
    plain = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    taken = [node for node in nodes if isinstance(node, ast.ImportFrom)]
    return plain | {f"{node.module}.{alias.name}" for node in taken for alias in node.names}


def test_the_lock_holds_the_projects_pins_and_no_torch():
    assert "torch" not in LOCK
    assert {name: version for name, version in PROJECT.items() if name != "torch"}.items() <= LOCK.items()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [
        *project["dependencies"],
        *project["optional-dependencies"]["workflow"],
        *project["optional-dependencies"]["test"],
    ]
    assert {canonical(re.match(r"[\w.-]+", one)[0]) for one in wanted} - {"torch"} <= LOCK.keys()


def test_the_lock_is_whole_and_portable():
    text = (ROOT / "requirements.lock").read_text()
    entries = re.split(r"\n(?=\w)", text.split("\n", 1)[1])
    assert all("--hash=sha256:" in entry for entry in entries)
    assert not re.search(r"://|file:|^-", text, flags=re.MULTILINE)

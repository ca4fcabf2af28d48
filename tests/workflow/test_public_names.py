"""The workflow and the package use the public names of Snakemake alone: any version may change its other ones."""

from __future__ import annotations

import re

from workspace import ROOT

PLACES = [ROOT / "Snakefile", *(path for name in ("workflow", "src") for path in (ROOT / name).rglob("*"))]
SOURCES = {
    path: path.read_text(encoding="utf-8") for path in PLACES if path.suffix in ("", ".smk", ".py") and path.is_file()
}
# The manual's chapters on rules (script:, flags, utils), and the packages that are published for plugins.
MODULES = re.compile(r"snakemake\.(utils|io|script)|snakemake_interface_(\w+_plugins|common)(\.\w+)*")
# What the object of a script has, by the same chapters.
OF_SCRIPTS = {"input", "output", "params", "wildcards", "threads", "resources", "log", "config", "rule", "utils"}
# Of the object `workflow` in a Snakefile. The last is in no chapter, but in what maintainers answer (issue 214).
OF_WORKFLOW = {"cores", "source_path", "configfiles"}
INSIDE = re.compile(
    r"\b(dag|persistence|scheduler|job_scheduler|spawned_job_args_factory)\b\.\w|\bjob\.dag\b|import_module\(.snakemake"
)


def found(pattern):
    """What the first group of a pattern matches in the sources, with the file of each."""
    return {match: path for path, text in SOURCES.items() for match in re.findall(pattern, text, re.MULTILINE)}


def test_only_public_modules_of_snakemake_are_imported():
    imported = found(r"^\s*(?:from|import)\s+(snakemake[\w.]*)")
    assert {name: path for name, path in imported.items() if not MODULES.fullmatch(name)} == {}
    assert "snakemake.utils" in imported  # the pattern finds what is there


def test_only_documented_attributes_are_used():
    assert found(r"\bworkflow\.(\w+)\b(?!/)(?=\W)").keys() - {"rst"} <= OF_WORKFLOW
    assert found(r"\bsnakemake\.(\w+)").keys() - {"readthedocs"} <= OF_SCRIPTS
    assert not [path for path, text in SOURCES.items() if INSIDE.search(text)]

"""The run of the workflow that a job belongs to: its description, and the code that it was started with.

The Snakemake process that a user starts writes the description (:mod:`experiment.session`) and hands its path down in
the environment, to local jobs and through SLURM. A job that finds other code than that ends before it computes.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from entropy_valley import errors, files, usage
from entropy_valley.errors import InputError

HANDED_DOWN = "ENTROPY_VALLEY_RUN"  # the environment variable with the path of the description
PACKAGE = Path(__file__).parent
CODE = {".py", ".smk", ".json", ".tex", ".csv"}
DIGEST = re.compile("[0-9a-f]{32}")
REMEDY = "Undo the change, or stop the run and its jobs and start it again."


def code(folder: Path = Path()) -> dict[str, str]:
    """The digest of each file of the package, and of the workflow in ``folder``."""
    return {name: files.file_digest(path) for name, path in _code_files(folder)}


def _code_files(folder: Path) -> Iterator[tuple[str, Path]]:
    yield from ((path.name, path) for path in [folder / "Snakefile"] if path.is_file())
    for root in (PACKAGE, folder / "workflow"):
        for path in sorted(root.rglob("*")):
            if path.suffix in CODE:
                yield f"{root.name}/{path.relative_to(root)}", path


def description() -> dict[str, Any] | None:
    """What the run wrote about itself; None outside any run."""
    path = os.environ.get(HANDED_DOWN)
    return files.read_json(path) if path else None


def require_same_code(started_with: Mapping[str, str]) -> None:
    """Raise InputError that names the files which are not as they were when the run was started."""
    now = code()
    changed = [name for name in dict.fromkeys([*started_with, *now]) if started_with.get(name) != now.get(name)]
    if changed:
        raise InputError("code", f"changed since this run was started: {errors.listed(changed, 8)}", REMEDY)


def params(given: str) -> Any:
    """A rule's params: from the file that the rule names, or from JSON text. A file that is named by the digest of its
    text, as the workflow writes them, must hold that text."""
    if not given.lstrip().startswith(("{", "[")):
        _require_named_text(Path(given))
        return files.read_json(given)
    try:
        return json.loads(given)
    except json.JSONDecodeError as error:
        raise InputError("PARAMS", f"not JSON ({error.msg})", "Give JSON text, or the path of a JSON file.") from None


def _require_named_text(path: Path) -> None:
    if DIGEST.fullmatch(path.stem) and path.is_file() and files.file_digest(path) != path.stem:
        raise InputError(path, "not the params that its name is the digest of", "Remove it and run Snakemake again.")


def script(main: Callable[[], None]) -> None:
    """Run a script's ``main`` as :func:`errors.run` does, unless its run was started with other code."""

    def checked() -> None:
        if run := description():
            require_same_code(run["code"])
        try:
            main()
        finally:
            usage.leave_gpu_use()

    errors.run(checked)

"""Nothing that was downloaded is ever run: neither a repository's own Python nor a pickle."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_neither_remote_code_nor_a_pickle_is_loaded():
    files = [path for top in ("src", "workflow") for kind in ("py", "smk") for path in (ROOT / top).rglob(f"*.{kind}")]
    sources = {path: path.read_text() for path in files}
    assert not [path for path, text in sources.items() if "trust_remote_code" in text]
    calls = [
        line for text in sources.values() for line in text.splitlines() if re.search(r"(torch|pickle)\.load", line)
    ]
    assert calls and not [line for line in calls if "weights_only=True" not in line]

from __future__ import annotations

from fake_results import matched, params  # noqa: F401 - fixtures

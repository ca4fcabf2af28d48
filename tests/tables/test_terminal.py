"""`entropy-valley show` on narrow terminals."""

from __future__ import annotations

import pytest

from entropy_valley.experiment.tables import terminal

TABLE = """\
| Direction | Method | COMET: Mean | COMET: Closure over Ratio + EOS | BLEU: Mean | BLEU: Closure |
| :-- | :-- | :-: | :-: | :-: | :-: |
| En→Zh | Oracle length | 0.8924 ± 0.0171 | 100% | 88.60 ± 5.39 | 100% |
|  | **Entropy-Valley** | **0.8413 ± 0.0101** | **66.7 ± 4.4%** | **77.41 ± 2.63** | **73.5 ± 4.3%** |

A note.
"""


@pytest.mark.parametrize(("width", "tables"), [(160, 1), (80, 2), (60, 3)])
def test_a_wide_table_is_shown_in_parts_with_whole_numbers(tmp_path, capsys, monkeypatch, width, tables):
    (tmp_path / "table.md").write_text(TABLE, encoding="utf-8")
    monkeypatch.setattr(terminal, "LOG", width)
    terminal.show(tmp_path / "table.md")
    text = capsys.readouterr().out
    assert text.count("Entropy-Valley") == text.count("Direction") == tables
    for number in ("0.8413 ± 0.0101", "66.7 ± 4.4%", "77.41 ± 2.63", "73.5 ± 4.3%", "A note."):
        assert text.count(number) == 1

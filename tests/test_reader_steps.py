"""A reader follows one sentence, rule `translate`, the loading of the config and the main table through few files."""

from __future__ import annotations

import pytest
from reader_steps import of_config, of_table, of_translate_rule, of_translation


@pytest.mark.parametrize(
    ("walked", "most_files", "most_jumps"),
    [(of_translation, 18, 204), (of_translate_rule, 29, 424), (of_config, 18, 150), (of_table, 14, 160)],
)
def test_a_reader_goes_through_few_files(tmp_path, walked, most_files, most_jumps):
    files, jumps = walked() if walked is of_config else walked(tmp_path)
    assert len(files) <= most_files and jumps <= most_jumps, (files, jumps)

"""A reader follows one sentence, and the loading of the config, through few files."""

from __future__ import annotations

from reader_steps import of_config, of_translation


def test_a_sentence_goes_through_few_files(tmp_path):
    files, jumps = of_translation(tmp_path)
    assert len(files) <= 15 and jumps <= 250, (files, jumps)


def test_a_config_goes_through_few_files():
    files, jumps = of_config()
    assert len(files) <= 15 and jumps <= 300, (files, jumps)

"""A reader follows one sentence, rule `translate`, the loading of the config and the main table through few files."""

from __future__ import annotations

from reader_steps import of_config, of_table, of_translate_rule, of_translation


def test_a_sentence_goes_through_few_files(tmp_path):
    files, jumps = of_translation(tmp_path)
    assert len(files) <= 15 and jumps <= 220, (files, jumps)


def test_rule_translate_goes_through_few_files(tmp_path):
    files, jumps = of_translate_rule(tmp_path)
    assert len(files) <= 22 and jumps <= 450, (files, jumps)


def test_a_config_goes_through_few_files():
    files, jumps = of_config()
    assert len(files) <= 15 and jumps <= 300, (files, jumps)


def test_a_table_goes_through_few_files(tmp_path):
    files, jumps = of_table(tmp_path)
    assert len(files) <= 12 and jumps <= 500, (files, jumps)

"""What given adapters plan in the place of training."""

from __future__ import annotations

import pytest
from workspace import LAST, by_rule


class TestReleasedAdapters:
    def test_nothing_is_trained(self, adopted):
        planned = by_rule(adopted.planned("--forceall"))
        assert planned["adopt_adapter"] == 2
        assert not planned.keys() & {"train", "corpus"}
        assert planned["translate"] == planned["score"] == 2

    @pytest.mark.parametrize("over", [{}, {"models": "elsewhere"}], ids=str)
    def test_a_second_run_does_nothing(self, adopted, over):
        assert not adopted.planned(over=over)

    def test_another_device_repeats_the_table_of_gpu_hours_alone(self, adopted):
        assert adopted.planned(over={"device": "cpu"}).keys() == LAST | {"all"}

    def test_another_adapter_repeats_its_run_alone(self, adopted):
        over = {"released": {"llama3-8b": {"en-zh": {1: {"folder": None, "repository": "someone/adapter"}}}}}
        planned = adopted.planned(over=over)
        assert planned["adopt_adapter en-zh.llama3-8b.1"]
        assert not [job for job in planned if "llada-8b" in job]

    def test_new_files_in_the_folder_are_taken(self, adopted):
        (adopted.folder / "given/adapter_model.safetensors").touch()
        assert by_rule(adopted.planned())["adopt_adapter"] == 2
        (adopted.folder / "given/adapter_model.safetensors").unlink()

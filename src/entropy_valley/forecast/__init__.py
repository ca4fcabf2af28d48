"""What the jobs of a config will cost: hours, GPU-hours, disk and downloads, before any of them runs."""

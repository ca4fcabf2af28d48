"""The jobs of a config: what is there of them, what they will take, and what a cluster grants them."""

JOBS = "ENTROPY_VALLEY_JOBS"  # the environment variable with the file that a dry run writes its jobs into

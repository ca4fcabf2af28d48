"""SLURM before anything is submitted: what the site says of itself, and whether it will run what is requested."""

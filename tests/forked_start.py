"""What each start of Snakemake does alike, done once for all forks: looking for plugins, completing our schema."""

from pathlib import Path

import yaml
from snakemake.cli import get_argument_parser

from entropy_valley.experiment import tables
from entropy_valley.experiment.config import base_files, load_files

get_argument_parser()
load_files(base_files(Path(__file__).parents[1]), tables.problems)
yaml.FullLoader = yaml.CFullLoader  # with which Snakemake reads configs: in Python, a tenth of a dry run

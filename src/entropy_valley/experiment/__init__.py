"""The paper's experiment: its config, the jobs of the workflow, tables and figures, the demo and the command line.

The library beside it does not import it: `make lint` checks this.
"""

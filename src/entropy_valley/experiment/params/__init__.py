"""What each rule knows of the config: the slice that its numbers depend on, as one canonical JSON string.

Snakemake re-runs a job when its params change. It compares values without their names and ignores those that are
no builtin type, so a rule gets one string with sorted keys; what changes no number (threads, folders) stays out.
"""

"""One number for each stage, part of what its jobs are keyed by.

Raise a stage's with any change of code that can change what it writes: Snakemake then runs its jobs again, and the
store's old values are no longer found. Snakemake itself would compare file times, and a branch switch would retrain
for hundreds of GPU-hours.
"""

CORPUS = 1
PRETRAINING = 3
TRAINING = 3
ADOPTION = 1
DECODING = 4
LENGTH_STATISTICS = 2
SIG_CONCENTRATION = 1
VALLEY = 1
LENGTH_HEAD = 1
GENERATION = 1
SCORING = 1
SCORING_INTO = {"ja": 2, "ko": 2}  # target languages whose BLEU got another tokenizer
REPORTING = 2

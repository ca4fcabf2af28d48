"""A revision number for each stage, part of its jobs' params and of the store's keys.

Raise it when you change code that can change a stage's output. Snakemake then runs the stage's jobs again, and old
values in the store are not used. Snakemake's own trigger, file times, would retrain for hundreds of GPU-hours after a
branch switch.
"""

CORPUS = 1
OVERLAP = 2
TOKENS = 1
PRETRAINING = 4
TRAINING = 4
ADOPTION = 1
DECODING = 4
SOURCE_GUIDED = 2  # what looks at the SIG
LENGTH_STATISTICS = 3
LEARNING = 1  # what length methods learn from development pairs
LENGTH_RATIOS = 2
SIG_CONCENTRATION = 2
VALLEY = 1
LENGTH_HEAD = 1
GENERATION = 1
SCORING = 1
SCORING_INTO = {"ja": 2, "ko": 2}  # target languages whose BLEU got another tokenizer
REPORTING = 17
HUMAN_EVALUATION = 1

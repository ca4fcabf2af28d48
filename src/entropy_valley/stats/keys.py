"""The columns that say what a row of results is of.

Results are two frames: one has a row for each cell (the columns of CELL), one a row for each sentence of it (an ``id``,
too). A cell is a training run decoded on a test set by a length method, a reveal order and a step budget.
"""

PLACE = ["direction", "testset"]
CELL = ["backbone", *PLACE, "pool", "seed", "order", "steps", "method"]
RUN = [key for key in CELL if key != "method"]  # cells that agree in these are compared sentence by sentence
SETTING = [key for key in RUN if key != "seed"]  # what means over runs are of

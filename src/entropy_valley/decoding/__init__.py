"""The exact engine, and what is asked of it.

Start with :mod:`entropy_valley.decoding.reference`: the paper's Algorithm 1 on one page, slow and plain. It shares with
the engine neither attention, packing nor numerics, and the engine is tested against it. Then read
:mod:`entropy_valley.decoding.engine`, whose loop is on its first page.
"""

"""From canvases to translations: reveal orders, variable-length decoders, beam search, one pipeline for all who decode.

Start with :mod:`entropy_valley.decoding.reference`: the paper's Algorithm 1 on one page, slow and plain. It
shares with the engine neither attention, packing nor numerics, and the engine is tested against it. Beside it lie
``reference_orders`` and ``reference_variable_length``.
"""

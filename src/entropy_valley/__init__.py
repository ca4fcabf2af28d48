"""Length-adaptive decoding for masked diffusion machine translation."""

"""How many slots each sentence gets: candidate lengths, all-mask probes, and the methods that choose."""

"""The jobs of a config: what is there of them, what they will take, and what a cluster grants them."""

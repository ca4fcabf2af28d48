"""The decoder of all families, loaded from released checkpoints, with bidirectional attention on packed sequences."""

"""Stock transformers models, loaded from released checkpoints, with bidirectional attention on packed sequences."""

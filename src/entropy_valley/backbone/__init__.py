"""Stock transformers models loaded from released checkpoints, made bidirectional and packed."""

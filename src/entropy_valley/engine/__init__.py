"""One model job: what is asked of the model, what the store knows, and the passes that answer the rest."""

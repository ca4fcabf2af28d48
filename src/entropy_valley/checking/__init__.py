"""Will the config's jobs run here? Each check ends in one line with a number: ok, failed or skipped."""

"""`entropy-valley check`: will the config's jobs run here? Each check ends in one line: ok, failed or skipped."""

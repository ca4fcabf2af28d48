"""``python -m entropy_valley``, if the command is not installed."""

from entropy_valley.experiment.cli import main

if __name__ == "__main__":  # and not in a process that it starts
    main()

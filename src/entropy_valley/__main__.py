"""``python -m entropy_valley``, if the command is not installed."""

from entropy_valley.cli import main

main()

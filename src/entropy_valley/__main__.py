"""``python -m entropy_valley``, for places where the command is not installed."""

from entropy_valley.cli import main

main()

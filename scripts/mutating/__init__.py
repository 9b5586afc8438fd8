"""The parts of `scripts/mutants.py`: mutations, replacement of code, test runner, and records."""

"""The parts of `scripts/mutants.py`: mutations, replacing the code of functions, running the tests, and records."""

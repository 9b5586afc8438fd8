"""The parts of `scripts/benchmark.py`: inputs from a seed, virtual environments, measured processes, and cases."""

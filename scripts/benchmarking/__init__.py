"""What `scripts/benchmark.py` is made of: inputs from a seed, environments, whole processes taken in turn, and the cases."""

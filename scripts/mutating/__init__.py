"""What `scripts/mutants.py` is made of: mistakes, functions that become mutants, the tests run on each, and records."""

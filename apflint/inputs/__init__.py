"""Input files: which ones to read, and their bytes."""

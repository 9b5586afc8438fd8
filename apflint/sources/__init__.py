"""Input files: finds the files to read, and reads their bytes."""

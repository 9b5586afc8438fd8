"""The single-file build: `start` and `importer` are parts of the file, and `pack` writes it."""

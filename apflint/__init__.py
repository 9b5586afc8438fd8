"""apflint: a linter and analyzer for Kubernetes API Priority and Fairness."""

__version__ = "0.1.0"

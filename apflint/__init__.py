"""apflint: a linter and analyzer for Kubernetes API Priority and Fairness."""

__version__ = "0.2.0.dev0"

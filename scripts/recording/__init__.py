"""Record the behavior of a kube-apiserver in the format of `fixtures/` (see `scripts/record_apiserver.py`)."""

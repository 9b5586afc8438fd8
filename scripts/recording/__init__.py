"""Record what a kube-apiserver does, in the format of `fixtures/` (see `scripts/record_apiserver.py`)."""

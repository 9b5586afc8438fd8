"""Model of the API server: classification, flow and seats of a request, and whether it is dispatched, queued or rejected."""

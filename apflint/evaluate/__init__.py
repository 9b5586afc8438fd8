"""Model of the API server: it classifies a request, finds its flow and seats, and dispatches, queues or rejects it."""

"""What a server does with a request: classify it, find its flow and seats, dispatch, queue or reject it."""

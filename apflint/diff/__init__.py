"""What changes from one configuration to another: requests, seats and queues of priority levels, objects."""

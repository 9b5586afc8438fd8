"""Simulation of the API server's fair queuing, with the server's own algorithm. Times are integer nanoseconds.

A `server` consists of priority levels. `borrowing` adjusts the limits of the levels to their `seat_demand`. Each level
has a `queue_set`: `queue_assignment` chooses the queue of a request, and `dispatch_selection` chooses the queue that
dispatches next. `event_loop` executes all actions in the order of their times. `retry_after_seconds` computes how long
rejected clients are asked to wait. Tests compare the results with recordings of Kubernetes 1.36.2.

`simulation` sends requests to simulated servers: the requests of a `load` at the times of `arrivals`, or the requests of
a `logged_load`. `routes` classifies the requests, and `feasibility` rejects loads that are too large. `statistics`,
`fairness` and `verdict_sentences` summarize the results.
"""

"""Simulation of the API server's fair queuing: the server's own algorithm on integer nanoseconds, without a server.

`server` has levels, `borrowing` adjusts their limits to their `seat_demand`, and each level has a `queue_set`:
`queue_assignment` chooses the queue of a request, and `dispatch_selection` the queue that dispatches next. `event_loop` calls them in the
order of time. `retry_after` computes the seconds that rejected clients are asked to wait. Tests compare the results
with recordings of Kubernetes 1.36.2.

`simulation` sends requests to these servers: those of a `load`, at the times of `arrivals`, or those of a `logged_load`. `routes`
classifies the requests, `feasibility` rejects loads that are too large, and `statistics`, `fairness` and `verdict` summarize.
"""

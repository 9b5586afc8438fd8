"""Reports about requests in kube-apiserver's own log, compared with a configuration, as text and JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.output.blocks import Facts
from apflint.output.explain import describe_request, request_json
from apflint.output.json_text import SCHEMA
from apflint.requests.server_log import LOGGED_WAIT_SECONDS
from apflint.wording import format_duration, join_some, pluralize, quote, write_sentence

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apflint.output.blocks import Block
    from apflint.requests.server_log import LoggedRequest
    from apflint.requests.server_log_comparison import LoggedComparison

NO_USER = "Lines of kube-apiserver's own log do not name the user."
_LABEL_CELLS = 9
_MAX_NAMED = 6


def logged_json(request: LoggedRequest, comparison: LoggedComparison) -> dict[str, object]:
    """Return the object that `explain --event --format json` prints for a line of kube-apiserver's log."""
    info = comparison.info
    return {
        "schema": SCHEMA,
        "request": None if info is None else request_json(info),
        "user": None,
        "flowSchema": comparison.flow_schema,
        "possibleFlowSchemas": list(comparison.possible),
        "logged": {
            "time": request.time or None,
            "auditID": request.audit_id or None,
            "userAgent": request.user_agent or None,
            "flowSchema": request.flow_schema,
            "priorityLevel": request.priority_level,
            "seats": request.seats,
            "finalSeats": request.final_seats,
            "wait": request.wait,
            "rejected": request.is_rejected,
            "status": request.status,
        },
        "disagreements": list(comparison.disagreements),
    }


def report_logged(request: LoggedRequest, comparison: LoggedComparison) -> Iterator[Block]:
    """Yield what the server logged about a request, and how the configuration would treat the request."""
    info = comparison.info
    what = f"{request.verb} {request.uri}" if info is None else describe_request(info)
    facts = [
        ("Logged", _describe_assignment(request)),
        ("Request", f"{what}, by a user that kube-apiserver's own log does not name"),
        ("", _describe_origin(request)),
    ]
    if request.flow_schema is not None:
        facts.append(("Seats", _describe_seats(request)))
    facts.append(("Result", _describe_result(request)))
    facts.append(("Here", _describe_comparison(request, comparison)))
    yield Facts([fact for fact in facts if fact[1]], _LABEL_CELLS)


def _describe_assignment(request: LoggedRequest) -> str:
    if request.flow_schema is None:
        return "no FlowSchema: API Priority and Fairness did not classify the request."
    return f"FlowSchema {quote(request.flow_schema)} -> priority level {quote(request.priority_level or '')}"


def _describe_origin(request: LoggedRequest) -> str:
    values = (
        ("user agent", request.user_agent and quote(request.user_agent)),
        ("audit ID", request.audit_id),
        ("time", request.time),
    )
    text = ", ".join(f"{name} {value}" for name, value in values if value)
    return write_sentence(text) if text else ""


def _describe_seats(request: LoggedRequest) -> str:
    if request.seats is None:
        return "not in the line."
    final = f", then {request.final_seats} while watchers are notified" if request.final_seats else ""
    return f"{pluralize(request.seats, 'seat')} while it executes{final}."


def _describe_result(request: LoggedRequest) -> str:
    after = "" if request.latency is None else f" after {_format(request.latency)}"
    if request.is_rejected:
        return f"Rejected by API Priority and Fairness{after}: status 429."
    status = "no status" if request.status is None else f"status {request.status}"
    if request.flow_schema is None:
        return f"Answered with {status}{after}."
    waited = "" if request.wait is None else f" {_format(request.wait)}"
    if not waited:
        waited = f" at most {_format(LOGGED_WAIT_SECONDS)}"
    if request.execution is None:
        return f"Ended with {status}{after}, before it was executed. It waited{waited}."
    note = " This 429 is not from API Priority and Fairness." if request.status == 429 else ""
    return f"Answered with {status}{after}. It waited{waited}, and executed for {_format(request.execution)}.{note}"


def _describe_comparison(request: LoggedRequest, comparison: LoggedComparison) -> str:
    if comparison.disagreements:
        clauses = " ".join(map(write_sentence, comparison.disagreements))
        return f"This configuration disagrees. {clauses}"
    if not comparison.possible:
        return "API Priority and Fairness does not classify this request."
    names = join_some([quote(name) for name in comparison.possible], _MAX_NAMED)
    agrees = (
        ""
        if request.flow_schema is None
        else "This configuration agrees with the log, as far as apflint can tell without the user name. "
    )
    if comparison.flow_schema is not None:
        return f"{agrees}The request gets the FlowSchema {names}, whoever sends it."
    return f"{agrees}The FlowSchema depends on the user: {names}. If you know the user, use --path with --as."


def _format(seconds: float) -> str:
    return format_duration(seconds * 1e6)

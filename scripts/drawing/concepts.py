"""The pictures of docs/concepts/. apflint computes all figures in the pictures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.evaluate.classify import classify, matched_by
from apflint.evaluate.limits import current_limits
from apflint.evaluate.seats import (
    MAXIMUM_LIST_SEATS,
    MINIMUM_SEATS,
    ListOptions,
    Seats,
    estimate_by_size,
    estimate_mutating_seats,
    request_bound,
)
from apflint.evaluate.shuffle_sharding import deal, flow_hash
from drawing.canvas import MARGIN, WIDTH, Canvas
from drawing.example import (
    RELEASE,
    SERVICE_ACCOUNT,
    find_example_flow,
    find_level,
    make_request,
    read_defaults,
    read_example,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

RIGHT = WIDTH - MARGIN


def draw_request_path() -> Canvas:
    """Draw the path of one request: FlowSchema, flow and queues, priority level and seats."""
    configuration, level = read_example().configuration, find_level("ci")
    user = f"{SERVICE_ACCOUNT}runner"
    resolution = classify(configuration, make_request("list pods", user, namespace="ci").digest)
    schema, flow = resolution.flow_schema, find_example_flow(user, "ci")
    canvas = Canvas(
        "The path of a request through API Priority and Fairness",
        f"The request is compared with FlowSchemas in order. The FlowSchema {schema.name} captures it. Its flow may wait in"
        f" {len(flow.hand or ())} of {flow.queues} queues of the priority level {level.name}, which has {level.nominal} seats.",
        366,
    )
    x, heading = 150, "heading"
    canvas.add_text(MARGIN, 36, "Request", heading)
    canvas.add_text(x, 36, "list pods -n ci", "name")
    canvas.add_text(x, 56, f"by {user}", "dim")
    canvas.add_arrow(x + 10, 66, 90)
    canvas.add_text(MARGIN, 110, "FlowSchema", heading)
    canvas.add_text(x, 110, f'"{schema.name}" is the first that matches', "")
    left = float(x)
    for position, other in enumerate(configuration.order):
        text = str(other.spec.matching_precedence)
        width, is_match = 12 + 7.3 * len(text), position == resolution.position
        if position > resolution.position:  # the server does not try this FlowSchema
            canvas.add_box(left, 120, width, 22, "ring", 4)
        else:
            canvas.add_box(left, 120, width, 22, "blue" if is_match else "track", 4)
        canvas.add_text(left + width / 2, 135, text, "on middle" if is_match else "dim middle")
        left += width + 3
    canvas.add_text(MARGIN, 135, "by precedence", "dim")
    canvas.add_arrow(x + 10, 150, 174)
    canvas.add_text(MARGIN, 194, "Flow", heading)
    canvas.add_text(MARGIN, 214, "and its queues", "dim")
    canvas.add_text(x, 194, f"The user is a flow. It has {len(flow.hand or ())} of the {flow.queues} queues.")
    _add_queues(canvas, x, 202, 470, 22, flow.queues, flow.hand or (), "blue")
    canvas.add_arrow(x + 10, 232, 256)
    canvas.add_text(MARGIN, 276, "Priority level", heading)
    canvas.add_text(MARGIN, 296, "and its seats", "dim")
    canvas.add_text(x, 276, f'"{level.name}" has {level.nominal} seats. A simple request takes 1.')
    canvas.add_squares(x, 286, level.nominal, "track", size=11, per_row=33)
    canvas.add_squares(x, 286, MINIMUM_SEATS, "blue", size=11)
    canvas.add_text(x, 340, "No free seat: the request waits in one of its queues, or gets 429.", "dim")
    return canvas


def draw_priority_levels() -> Canvas:
    """Draw the three kinds of priority levels with their queues and seats."""
    exempt, queuing, rejecting = map(find_level, ("exempt", "ci", "catch-all"))
    canvas = Canvas(
        "Three kinds of priority levels",
        f"{exempt.name} has no limit. {queuing.name} has {queuing.queues} queues and {queuing.nominal} seats."
        f" {rejecting.name} has {rejecting.nominal} seats and no queues.",
        316,
    )
    for top, level, kind, text in (
        (20, exempt, "Exempt", "executes each request immediately, without a limit"),
        (84, queuing, "Limited, Queue", f"{queuing.nominal} seats, and {queuing.queues} queues to wait in"),
        (222, rejecting, "Limited, Reject", f"{rejecting.nominal} seats; rejects requests without a free seat (429)"),
    ):
        canvas.add_text(MARGIN, top + 17, level.name, "name")
        canvas.add_text(MARGIN, top + 36, kind, "dim")
        canvas.add_text(160, top + 17, text)
    canvas.add_path(f"M{MARGIN} 71H{RIGHT}M{MARGIN} 209H{RIGHT}", "divider")
    canvas.add_squares(160, 112, queuing.nominal, "blue", size=11, per_row=33)
    canvas.add_text(160, 156, f"Queues of at most {queuing.queue_length_limit} requests:", "dim")
    _add_queues(canvas, 160, 164, 460, 26, queuing.queues or 0, (), "track")
    canvas.add_squares(160, 250, rejecting.nominal, "blue", size=11)
    canvas.add_text(160, 291, "Blue: nominal seats of one server", "dim")
    return canvas


def draw_flow_schemas() -> Canvas:
    """Draw the FlowSchemas that the server tries for four requests, and the FlowSchema that captures each request."""
    requests = (
        ("update leases -n kube-node-lease", "node worker-1", "system:node:worker-1", "kube-node-lease"),
        ("list pods -n ci", "service account ci/runner", f"{SERVICE_ACCOUNT}runner", "ci"),
        ("list pods -A", "user alice", "alice", None),
        ("get /healthz", "anonymous probe", "system:anonymous", None),
    )
    order = read_example().configuration.order
    top, step = 64, 24
    bottom = top + step * len(order)
    canvas = Canvas(
        "Which FlowSchema captures a request",
        "FlowSchemas in matching order, and four requests. Each request goes to the first FlowSchema that matches it.",
        bottom + 20 * (len(requests) + 1) + 28,
    )
    canvas.add_text(MARGIN, top - 24, "Precedence", "heading")
    canvas.add_text(124, top - 24, "FlowSchema", "heading")
    canvas.add_text(RIGHT, top - 24, "Priority level", "heading end")
    for at, schema in enumerate(order):
        y = top + step * at
        canvas.add_text(100, y + 5, str(schema.spec.matching_precedence), "dim end")
        canvas.add_text(124, y + 5, schema.name, "name")
        canvas.add_text(RIGHT, y + 5, schema.spec.priority_level_configuration, "dim end")
    for at, (text, who, user, namespace) in enumerate(requests):
        x, letter = 376 + at * 34, "ABCD"[at]
        groups = ["system:nodes"] if user.startswith("system:node:") else []
        words = text.split(" -")[0].replace("leases", "leases.coordination.k8s.io worker-1")
        digest = make_request(words, user, *groups, namespace=namespace).digest
        position = classify(read_example().configuration, digest).position
        canvas.add_text(x, top - 24, letter, "heading middle")
        canvas.add_path(f"M{x} {top - 16}V{top + step * position - 8}", "line")
        for row, schema in enumerate(order):
            if row == position:
                canvas.add_circle(x, top + step * row, 8, "blue")
            elif row > position and matched_by(digest, schema) is not None:
                canvas.add_circle(x, top + step * row, 6, "ring")
        y = bottom + 12 + 20 * at
        canvas.add_text(MARGIN, y, letter, "heading")
        canvas.add_text(42, y, text, "name")
        canvas.add_text(320, y, who, "dim")
    y = bottom + 18 + 20 * len(requests)
    canvas.add_circle(MARGIN + 6, y - 4, 6, "blue")
    canvas.add_text(42, y, "captures the request")
    canvas.add_circle(220, y - 4, 6, "ring")
    canvas.add_text(236, y, "matches it too, but is not tried")
    return canvas


def draw_flows() -> Canvas:
    """Draw how the distinguisherMethod groups six requests into flows."""
    requests = [
        (account, namespace) for account in ("runner", "deployer") for namespace in ("ci", "staging", "production")
    ]
    columns = ((None, "none"), ("ByUser", "ByUser"), ("ByNamespace", "ByNamespace"))
    canvas = Canvas(
        "Six requests of one FlowSchema as flows",
        "Without a distinguisherMethod, all requests are one flow. With ByUser, each user is a flow. With ByNamespace, each"
        " namespace is a flow.",
        322,
    )
    canvas.add_text(MARGIN, 36, "Requests", "heading")
    canvas.add_text(MARGIN, 58, "user, namespace", "dim")
    canvas.add_text(230, 36, "distinguisherMethod", "heading")
    for row, (account, namespace) in enumerate(requests):
        canvas.add_text(MARGIN, 88 + 32 * row, f"ci:{account}, {namespace}", "name")
    for column, (method, label) in enumerate(columns):
        x = 230 + 132 * column
        canvas.add_text(x, 58, label, "name")
        flows = [find_example_flow(SERVICE_ACCOUNT + account, namespace, method) for account, namespace in requests]
        distinct = list(dict.fromkeys(flow.distinguisher for flow in flows))
        for row, flow in enumerate(flows):
            kind = ("blue", "teal", "purple")[distinct.index(flow.distinguisher)]
            text = flow.distinguisher.removeprefix("system:serviceaccount:") or "(empty)"
            canvas.add_box(x, 71 + 32 * row, 122, 26, kind, 5)
            canvas.add_text(x + 61, 88 + 32 * row, text, "name on middle")
        queues = set().union(*(flow.hand or () for flow in flows))
        noun = "flow" if len(distinct) == 1 else "flows"
        canvas.add_text(x, 286, f"{len(distinct)} {noun}", "heading")
        canvas.add_text(x, 305, f"{len(queues)} of {flows[0].queues} queues", "dim")
    return canvas


ELEPHANT, MICE = "runner", ("deployer", "scanner", "release", "docs", "docker", "unit", "cache")
"""Service accounts in the namespace `ci`: an elephant, which sends very many requests, and mice, which send few."""


def draw_shuffle_sharding() -> Canvas:
    """Draw the hands of a busy flow and of seven other flows with 8 queues and with the queues of `ci`."""
    level = find_level("ci")
    pairs = ((8, 2), (level.queues or 0, level.hand_size or 0))
    canvas = Canvas(
        "The queues of one busy flow and of seven other flows",
        "With 8 queues and hand size 2, the busy flow has both queues of the flow docker. With 64 queues and hand size 6,"
        " each flow has queues without requests of the busy flow.",
        516,
    )
    for top, (queues, hand_size) in zip((20, 256), pairs, strict=True):
        canvas.add_text(MARGIN, top + 16, f"queues: {queues}, handSize: {hand_size}", "heading")
        hands = {name: deal_hand(name, queues, hand_size) for name in (ELEPHANT, *MICE)}
        for row, (name, hand) in enumerate(hands.items()):
            y, full = top + 28 + 25 * row, set(hands[ELEPHANT])
            canvas.add_text(MARGIN, y + 13, name, "name")
            is_elephant = name == ELEPHANT
            shared = () if is_elephant else full.intersection(hand)
            own = () if is_elephant else set(hand) - full
            _add_queues(canvas, 104, y, 356, 17, queues, own, "blue")
            _add_queues(canvas, 104, y, 356, 17, queues, hand if is_elephant else shared, "red", track=False)
            remark = "fills its queues" if is_elephant else f"{len(own)} of {hand_size} free"
            canvas.add_text(474, y + 13, remark if own or is_elephant else "no free queue", "" if own else "heading")
    canvas.add_box(MARGIN, 490, 10, 10, "red")
    canvas.add_text(MARGIN + 16, 500, f"queue full of requests of {ELEPHANT}", "dim")
    canvas.add_box(300, 490, 10, 10, "blue")
    canvas.add_text(316, 500, "queue of the flow without them", "dim")
    return canvas


def deal_hand(account: str, queues: int, hand_size: int) -> tuple[int, ...]:
    """Return the hand of the flow of a service account in the namespace `ci`, at the FlowSchema "ci"."""
    return deal(flow_hash("ci", SERVICE_ACCOUNT + account), queues, hand_size)


def list_seat_examples() -> tuple[tuple[str, str, str, Seats], ...]:
    """Return examples as tuples: request, objects to load or watchers to notify, priority level, and seats."""
    bounds = {name: find_level(name).max_seats or 0 for name in ("ci", "leader-election", "workload-low")}
    size, many, watchers = 4_000, 5_000, 60

    def list_pods(objects: int, level: str, *, from_cache: bool = True) -> Seats:
        bound = request_bound(bounds[level], MAXIMUM_LIST_SEATS)
        return Seats(estimate_by_size(ListOptions(), objects, size, bound, from_cache=from_cache))

    return (
        ("get one pod", "", "ci", Seats(MINIMUM_SEATS)),
        ("list 50 pods", "4 kB each", "ci", list_pods(50, "ci")),
        (f"list {many:,} pods", "from the watch cache", "ci", list_pods(many, "ci")),
        (f"list {many:,} pods", "from etcd", "workload-low", list_pods(many, "workload-low", from_cache=False)),
        ("update a pod", "9 watchers", "ci", estimate_mutating_seats(9, bounds["ci"])),
        ("update a pod", f"{watchers} watchers", "ci", estimate_mutating_seats(watchers, bounds["ci"])),
        (
            "update a lease",
            f"{watchers} watchers",
            "leader-election",
            estimate_mutating_seats(watchers, bounds["leader-election"]),
        ),
    )


def draw_seats() -> Canvas:
    """Draw the seats of requests as squares.

    A request holds the maximum of its initial and final seats from its start to its end (recorded on 1.36.2).
    """
    examples = list_seat_examples()
    canvas = Canvas(
        "Seats of requests",
        "; ".join(
            f"{request} ({detail or 'one object'}) at {level}: {seats.peak}"
            for request, detail, level, seats in examples
        ),
        62 + 50 * len(examples),
    )
    x, per_row = 306, 20
    canvas.add_text(MARGIN, 36, "Request", "heading")
    canvas.add_text(178, 36, "Priority level", "heading")
    canvas.add_text(x, 36, "Seats", "heading")
    for row, (request, detail, level, seats) in enumerate(examples):
        y = 68 + 50 * row
        canvas.add_text(MARGIN, y, request)
        if detail:
            canvas.add_text(MARGIN, y + 18, detail, "dim")
        canvas.add_text(178, y, level, "name")
        canvas.add_squares(x, y - 10, seats.peak, "blue", size=11, per_row=per_row)
        end = x + 13 * min(seats.peak, per_row) + 10
        canvas.add_text(end, y, str(seats.peak))
        if seats.final:
            canvas.add_text(end + 24, y, f"and for {seats.nanoseconds / 1e6:g} ms after its end", "dim")
    return canvas


def draw_shares() -> Canvas:
    """Draw the nominal seats of all levels before and after the level `ci` of the example is added."""
    before, after = read_defaults().limits, read_example().limits
    names = [level.name for level in after.levels if level.shares]
    levels = {name: after.level(name) for name in names}
    columns = {
        'Without "ci"': {level.name: level.nominal for level in before.levels},
        'With "ci"': {level.name: level.nominal for level in after.levels},
    }
    shares = {name: str(level.shares) for name, level in levels.items() if level}
    return _draw_bars(
        "Nominal seats of priority levels",
        f"A new priority level with {shares['ci']} shares takes seats from all other levels.",
        shares,
        columns,
        f"Kubernetes {RELEASE}, {after.server_concurrency} seats of one API server",
    )


def draw_borrowing() -> Canvas:
    """Draw the current limits of all levels if all levels are busy, if no level is busy, and if only `ci` is busy."""
    limits = read_example().limits
    names = [level.name for level in limits.levels if level.shares]
    endless = 10.0 * limits.server_concurrency
    columns = {
        "All are busy": current_limits(limits, dict.fromkeys(names, endless)),
        "None is busy": current_limits(limits, {}),
        'Only "ci" is busy': current_limits(limits, {"ci": endless}),
    }
    return _draw_bars(
        "Seats of priority levels that lend and borrow",
        "Current limits after the adjustment of every 10 seconds: "
        + "; ".join(f"{title}: ci has {seats['ci']} seats" for title, seats in columns.items()),
        {level.name: f"{level.min}" for level in limits.levels if level.shares},
        columns,
        f"Kubernetes {RELEASE}, {limits.server_concurrency} seats of one API server",
        note_heading="Min",
    )


def _draw_bars(
    title: str,
    description: str,
    notes: Mapping[str, str],
    columns: Mapping[str, Mapping[str, int]],
    footer: str,
    *,
    note_heading: str = "Shares",
) -> Canvas:
    """Draw a table with a row for each level: name, note, and a bar with a number for the seats in each column."""
    first, step = 214, 30
    canvas = Canvas(title, description, 88 + step * len(notes))
    canvas.add_text(MARGIN, 36, "Priority level", "heading")
    canvas.add_text(first - 22, 36, note_heading, "heading end")
    width = (RIGHT - first) / len(columns)
    longest = max(seats for column in columns.values() for seats in column.values())
    for at, (heading, column) in enumerate(columns.items()):
        x = first + width * at
        canvas.add_text(x, 36, heading, "heading")
        for row, name in enumerate(notes):
            y = 66 + step * row
            seats = column.get(name)
            if seats is None:
                continue
            length = round((width - 46) * seats / longest, 1)
            canvas.add_box(x, y - 12, max(length, 1), 16, "blue" if name == "ci" else "teal")
            canvas.add_text(x + length + 6, y, str(seats))
    for row, (name, note) in enumerate(notes.items()):
        canvas.add_text(MARGIN, 66 + step * row, name, "name")
        canvas.add_text(first - 22, 66 + step * row, note, "dim end")
    canvas.add_text(MARGIN, 70 + step * len(notes), footer, "dim")
    return canvas


def _add_queues(
    canvas: Canvas,
    x: float,
    y: float,
    width: float,
    height: float,
    queues: int,
    marked: Sequence[int] | set[int],
    kind: str,
    *,
    track: bool = True,
) -> None:
    """Draw queues as columns. The queues in `marked` have another color."""
    step = width / queues
    inner = step - min(2.0, step / 4)

    def draw(numbers: Sequence[int], kind: str) -> None:
        data = "".join(f"M{round(x + step * at, 2):g} {y:g}h{inner:.3g}v{height:g}h-{inner:.3g}z" for at in numbers)
        canvas.add_path(data, kind)

    if track:
        draw([at for at in range(queues) if at not in marked], "track")
    if marked:
        draw(sorted(marked), kind)


PICTURES: dict[str, Callable[[], Canvas]] = {
    "request-path": draw_request_path,
    "priority-levels": draw_priority_levels,
    "flow-schemas": draw_flow_schemas,
    "flows": draw_flows,
    "shuffle-sharding": draw_shuffle_sharding,
    "seats": draw_seats,
    "shares": draw_shares,
    "borrowing": draw_borrowing,
}
"""For each file in docs/images/: the function that draws the picture."""

"""The rules about a running server. A rule is a function that yields diagnoses of the state of one server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.doctor.capacity_findings import (
    demand_above_nominal,
    long_waits,
    request_wider_than_level,
    requests_rejected,
    saturated_level,
    starved_lender,
)
from apflint.doctor.manifest_comparison_findings import (
    dangling_flow_schema,
    flow_schema_without_requests,
    limits_differ,
    objects_differ,
    spec_restored,
)
from apflint.doctor.request_findings import (
    catch_all_traffic,
    default_level_traffic,
    flow_fills_queues,
    flow_of_several_users,
    list_cost_capped,
    system_traffic_misplaced,
)
from apflint.doctor.server_findings import misleading_number, phantom_demand, quiescing_level, stale_metrics

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from apflint.doctor.evidence import Diagnosis, Evidence

DIAGNOSES: dict[str, Callable[[Evidence], Iterator[Diagnosis]]] = {
    "APF801": requests_rejected,
    "APF802": long_waits,
    "APF803": saturated_level,
    "APF804": demand_above_nominal,
    "APF805": starved_lender,
    "APF806": limits_differ,
    "APF807": objects_differ,
    "APF808": flow_schema_without_requests,
    "APF809": catch_all_traffic,
    "APF810": system_traffic_misplaced,
    "APF811": flow_fills_queues,
    "APF812": flow_of_several_users,
    "APF813": request_wider_than_level,
    "APF814": quiescing_level,
    "APF815": stale_metrics,
    "APF816": phantom_demand,
    "APF817": misleading_number,
    "APF818": list_cost_capped,
    "APF819": dangling_flow_schema,
    "APF820": spec_restored,
    "APF821": default_level_traffic,
}
"""Maps rule IDs to the functions of the rules."""

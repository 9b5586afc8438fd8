"""Renders dashboards as JSON for Grafana. Needs the Grafana Foundation SDK, an optional dependency."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from grafana_foundation_sdk.builders import common, dashboard, prometheus, timeseries
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.common import LegendDisplayMode, LegendPlacement, TooltipDisplayMode
from grafana_foundation_sdk.models.dashboard import (
    DashboardCursorSync,
    DataSourceRef,
    VariableOption,
    VariableRefresh,
    VariableSort,
)

from apflint.doctor import metric_names
from apflint.monitoring.panels import CLUSTER_VARIABLE, INSTANCE_VARIABLE, LEVEL_VARIABLE
from apflint.output.sanitize import sanitize, sanitize_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from apflint.monitoring.panels import Panel, Row
    from apflint.monitoring.queries import Queries

TITLE = "Kubernetes API Priority and Fairness"
UID = "apflint-priority-and-fairness"
_SOURCE = DataSourceRef(type_val="prometheus", uid="${datasource}")
_HEIGHT, _WIDTH = 8, 12
_ALL = VariableOption(selected=True, text="All", value="$__all")


def render_dashboard(rows: Iterable[Row], levels: Sequence[str], source: Queries, notes: Sequence[str]) -> str:
    """Render a dashboard as JSON in ASCII.

    `source` selects the API servers. The variables of the dashboard narrow this selection.
    """
    builder = (
        dashboard.Dashboard(TITLE)
        .uid(UID)
        .description("\n".join(sanitize(note) for note in notes))
        .tags(["kubernetes", "api-priority-and-fairness"])
        .editable()
        .tooltip(DashboardCursorSync.CROSSHAIR)
        .time("now-1h", "now")
        .refresh("1m")
        .with_variable(dashboard.DatasourceVariable("datasource").label("Data source").type("prometheus"))
        .with_variable(_label_variable(CLUSTER_VARIABLE, "Cluster", source.cluster_label, source))
        .with_variable(_label_variable(INSTANCE_VARIABLE, "API server", "instance", source))
        .with_variable(_level_variable(levels))
    )
    for row in rows:
        header = dashboard.Row(sanitize(row.title))
        builder = builder.with_row(header.repeat(LEVEL_VARIABLE) if row.repeats else header)
        for panel in row.panels:
            builder = builder.with_panel(_panel(panel))
    text = json.dumps(builder.build(), cls=JSONEncoder, indent=2)
    return sanitize_json(text) + "\n"


def _label_variable(name: str, title: str, label: str, source: Queries) -> dashboard.QueryVariable:
    """Return a dashboard variable with the values of a label.

    The value `All` of the variable also selects servers without the label.
    """
    narrowed = source if name == CLUSTER_VARIABLE else _in_cluster(source)
    query: dict[str, object] = {
        "query": f"label_values({narrowed.select(metric_names.NOMINAL)}, {label})",
        "refId": f"{name}-values",
    }
    return (
        dashboard.QueryVariable(name)
        .label(title)
        .query(query)
        .datasource(_SOURCE)
        .refresh(VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(VariableSort.ALPHABETICAL_ASC)
        .multi(True)
        .include_all(True)
        .all_value(".*")
        .current(_ALL)
    )


def _in_cluster(source: Queries) -> Queries:
    return source._replace(matchers=(*source.matchers, f'{source.cluster_label}=~"${CLUSTER_VARIABLE}"'))


def _level_variable(levels: Sequence[str]) -> dashboard.CustomVariable:
    """Return a dashboard variable whose values are the priority levels `levels`.

    Grafana reads the values as one text with commas between them, so commas in names are escaped.
    """
    values = ",".join(sanitize(level).replace("\\", "\\\\").replace(",", "\\,") for level in levels)
    variable = dashboard.CustomVariable(LEVEL_VARIABLE).label("Priority level").values(values)
    return variable.multi(True).include_all(True).current(_ALL)


def _panel(panel: Panel) -> timeseries.Panel:
    legend = common.VizLegendOptions().display_mode(LegendDisplayMode.LIST).placement(LegendPlacement.BOTTOM)
    built = (
        timeseries.Panel()
        .title(panel.title)
        .description(panel.description)
        .datasource(_SOURCE)
        .unit(panel.unit)
        .min(0)
        .height(_HEIGHT)
        .span(_WIDTH)
        .legend(legend.show_legend(True).calcs([]))
        .tooltip(common.VizTooltipOptions().mode(TooltipDisplayMode.MULTI))
    )
    for number, target in enumerate(panel.targets):
        query = prometheus.Dataquery().expr(target.expression).legend_format(target.legend).range()
        built = built.with_target(query.ref_id(chr(ord("A") + number)))
    return built

"""Alerts for Prometheus and dashboards for Grafana, built from a configuration and the metrics of its release."""

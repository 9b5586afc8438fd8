"""Renderers: functions that convert values to text or JSON, without reading or writing files."""

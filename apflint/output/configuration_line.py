"""The line of an output that names its configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.named_tuple import NamedTuple
from apflint.output.blocks import Prose
from apflint.output.console import render_prose

if TYPE_CHECKING:
    from collections.abc import Mapping

    from apflint.output.console import Style
    from apflint.sources.effective_configurations import EffectiveConfiguration


class Sides(NamedTuple):
    """The names of two configurations that are compared, and their descriptions."""

    old: str
    new: str
    old_description: str = ""
    new_description: str = ""

    @property
    def description(self) -> str:
        """The descriptions of both configurations."""
        return f"{self.old_description} -> {self.new_description}"


def name_sides(old: EffectiveConfiguration, new: EffectiveConfiguration) -> Sides:
    """Return the names and descriptions of two configurations."""
    return Sides(old.name, new.name, old.description, new.description)


def report_configuration(*sentences: str) -> Prose:
    """Return a paragraph that names the basis of a verdict. The last sentence is the description of a configuration.

    For example `Configuration: apf.yaml (2 objects) and built-in objects of 1.36`.
    """
    *others, description = sentences
    return Prose([*others, f"Configuration: {description}"], "dim")


def render_configuration(description: str, style: Style) -> str:
    """Render the line that names the configuration."""
    return render_prose(style, f"Configuration: {description}", color="dim")


def name_configuration(value: Mapping[str, object], description: str | None) -> dict[str, object]:
    """Return the JSON object `value` with `configuration` inserted after `schema`.

    `description` is None if the command has no configuration.
    """
    return {"schema": value["schema"], "configuration": description, **value}

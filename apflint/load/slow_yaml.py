"""YAML events without libyaml: ruamel.yaml's own parser, with the events that the rest of the loader knows."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from yaml.events import Event


class SlowParser:
    """Gives the events of ruamel.yaml's pure Python parser as PyYAML's event classes, one at a time."""

    def __init__(self, text: str) -> None:
        from ruamel.yaml import YAML  # 20 ms that only a machine without libyaml pays

        self._events = iter(YAML(typ="safe", pure=True).parse(text))

    def get_event(self) -> Event | None:
        """The next event, or None at the end. Raises PyYAML's errors."""
        from ruamel.yaml.error import MarkedYAMLError, YAMLError
        from ruamel.yaml.reader import ReaderError
        from yaml import error as errors
        from yaml import events as classes

        try:
            event = next(self._events, None)
        except MarkedYAMLError as error:
            raise errors.MarkedYAMLError(
                error.context, error.context_mark, error.problem, error.problem_mark
            ) from error
        except ReaderError as error:
            place: Any = SimpleNamespace(index=error.position)
            raise errors.MarkedYAMLError(None, None, "control characters are not allowed", place) from error
        except YAMLError as error:
            raise errors.YAMLError(str(error)) from error
        if event is None:
            return None
        made: Event = object.__new__(getattr(classes, type(event).__name__))
        for name in ("start_mark", "end_mark", "anchor", "implicit", "value", "style", "flow_style", "version", "tag"):
            if hasattr(event, name):
                value = getattr(event, name)
                setattr(made, name, str(value) if name == "tag" and value is not None else value)
        return made

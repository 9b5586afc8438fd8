"""A run of apflint, from the source arguments on the command line to the exit status. Start reading here.

    source arguments → sources → configurations → checks or an analysis → output → exit status

Before a run, `cli/main.py` starts the process. Then `cli/fast_path.py` or `cli/app.py` parses the command line and calls the
function of the command in `cli/commands/`, which calls `run`. The language server reads and checks files in the same way, but
without `run` (`lsp/workspace.py`).
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, NamedTuple

from apflint.cli.error_reporting import print_note
from apflint.cli.exit_codes import ExitCode
from apflint.cli.progress import show_progress
from apflint.sources.inputs import read_inputs

if TYPE_CHECKING:
    from collections.abc import Callable

    from apflint.sources.effective_configurations import EffectiveConfiguration
    from apflint.sources.input_types import InputRequest, Inputs


class Answer(NamedTuple):
    """The result of a command: the texts to print, and the exit status of apflint."""

    text: str = ""
    """Text for standard output. `notes`, `errors` and `summary` are printed to standard error."""
    notes: tuple[str, ...] = ()
    """Sentences to print first."""
    errors: tuple[str, ...] = ()
    """Sentences to print after `text`. If there are any, the exit status is 2."""
    summary: str = ""
    """Lines to print last."""
    status: int = ExitCode.OK


def run(request: InputRequest, find_answer: Callable[[Inputs], Answer], *, quiet: bool = False) -> int:
    """Read the inputs, call `find_answer`, and print the answer. Return the exit status of the process.

    If `quiet` is true, show no progress.
    """
    # 1. Sources. The source arguments name files, directories, git revisions, kustomizations, clusters in the settings, or
    #    a running cluster. A source yields names and contents of files. Unreadable sources become errors in the result.
    # 2. Configurations. A configuration has a release, objects and a name. Each cluster of the project is one
    #    configuration. A project without clusters is one configuration with an empty name.
    with show_progress("Reading", quiet=quiet) as progress:
        inputs = read_inputs(request, progress.track)

    # 3. Work of the command. `check` loads the files, runs the checks on each configuration, and renders
    #    the report (`check_inputs` of apflint/input_checking.py). `fix` and `migrate` edit the files. Other commands analyze the
    #    objects that the API servers of one cluster have (`analyze` below).
    answer = find_answer(inputs)

    # 4. and 5. Output and exit status. The function `show` prints the answer, and returns the exit status.
    errors = (*(error.message for error in inputs.errors), *answer.errors)
    return show(answer._replace(notes=(*inputs.notes, *answer.notes), errors=errors))


def show(answer: Answer) -> int:
    """Print an answer, and return the exit status of the process."""
    # 4. Output. The result (`text`) goes to standard output. Notes, errors and the summary go to standard error.
    for note in answer.notes:
        print_note(note)
    if answer.text:
        sys.stdout.write(answer.text)
        sys.stdout.flush()
    for error in answer.errors:
        print_note(error)
    sys.stderr.write(answer.summary)
    # 5. Exit status. The status is 2 if there are errors, because something could not be read or written. If not, it is
    #    the status of the answer.
    return ExitCode.ERROR if answer.errors else answer.status


def analyze(request: InputRequest, find_answer: Callable[[EffectiveConfiguration], Answer]) -> int:
    """Run a command that needs exactly one configuration: call `find_answer` with it, and print the answer.

    Return the exit status of the process.
    """
    from apflint.sources.effective_configurations import build_configuration

    def answer(inputs: Inputs) -> Answer:
        configuration = build_configuration(inputs)
        _print_notes(configuration)
        return find_answer(configuration)

    return run(request, answer)


def read(request: InputRequest, *, notes_unserved: bool = True) -> EffectiveConfiguration:
    """Return the configuration that the source arguments name. Print the notes about the configuration.

    If `notes_unserved` is true, also print a note about manifests in API versions that the release does not serve.

    Commands that also read other inputs, such as logs, call this function. Raises UserError as `read_configuration`
    does.
    """
    from apflint.sources.effective_configurations import read_configuration

    configuration = read_configuration(request)
    _print_notes(configuration, notes_unserved=notes_unserved)
    return configuration


def _print_notes(configuration: EffectiveConfiguration, *, notes_unserved: bool = True) -> None:
    from apflint.output.configuration_line import describe_unserved

    unserved = describe_unserved(configuration) if notes_unserved else ()
    for note in (*configuration.notes, *unserved):
        print_note(note)

"""Shell completion: the scripts of `apflint completion SHELL`, and the answers that they ask apflint for.

typer's own completion knows neither rule ids nor releases, passes help texts through `eval` in zsh, and installs itself by
editing start-up files. So the scripts are ours. They run apflint with `_APFLINT_COMPLETE` set to the name of the shell and
print what comes back as data: one candidate a line, with a tab before its description where the shell shows one. No
candidates means that the shell should offer files.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_BASH = """\
# bash completion of apflint. Now: eval "$(apflint completion bash)"
_apflint() {
    local candidate
    COMPREPLY=()
    while IFS= read -r candidate; do
        COMPREPLY+=("$candidate")
    done < <(_APFLINT_COMPLETE=bash "$1" "${COMP_LINE:0:COMP_POINT}" "$COMP_WORDBREAKS" 2>/dev/null)
    # A file is to follow "sarif=", and a release "defaults:".
    if [[ ${#COMPREPLY[@]} -gt 0 && "${COMPREPLY[0]}" == *[=:] ]]; then
        compopt -o nospace 2>/dev/null
    fi
}
complete -o bashdefault -o default -F _apflint apflint
"""

_ZSH = """\
#compdef apflint
# zsh completion of apflint. A file "_apflint" in a folder of $fpath; or now: source <(apflint completion zsh)
_apflint() {
    local -a candidates open closed
    candidates=(${(f)"$(_APFLINT_COMPLETE=zsh ${words[1]} "${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null)"})
    if (( ! $#candidates )); then
        compset -P '*='
        _files
        return
    fi
    # A file is to follow "sarif=", and a release "defaults:".
    open=(${(M)candidates:#*(=|\\\\:)})
    closed=(${candidates:#*(=|\\\\:)})
    (( $#open )) && _describe -t values value open -S ''
    (( $#closed )) && _describe -t values value closed
}
if [[ "$funcstack[1]" == _apflint ]]; then
    _apflint "$@"
else
    compdef _apflint apflint
fi
"""

_FISH = """\
# fish completion of apflint. Now: apflint completion fish | source
function __apflint_candidates
    set -l words (commandline -opc) (commandline -ct)
    set -l candidates (_APFLINT_COMPLETE=fish $words[1] $words[2..-1] 2>/dev/null)
    if test (count $candidates) -gt 0
        printf '%s\\n' $candidates
    else
        __fish_complete_path (commandline -ct)
    end
end
complete --command apflint --no-files --arguments '(__apflint_candidates)'
"""

_SCRIPTS = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}


class Candidate(NamedTuple):
    """A word that could stand here, and what it means, where there is more to say."""

    value: str
    about: str = ""


def script(shell: str) -> str:
    """The script that a shell reads once."""
    return _SCRIPTS[shell]


def answer(shell: str, words: list[str]) -> int:
    """Prints the candidates for the last of `words`, as the scripts above want them; the exit status.

    zsh and fish give the words after the program's name; bash, which takes words apart at `=` and `:`, gives the line up
    to the cursor, and the characters at which it does so.
    """
    if shell not in _SCRIPTS:
        raise ValueError(f'_APFLINT_COMPLETE is "{shell}", and only {", ".join(_SCRIPTS)} are completed for')
    breaks = ""
    if shell == "bash" and words:
        line, breaks = words[0], "".join(words[1:2])
        words = split(line)[1:]
    candidates = complete(words or [""])
    if shell == "bash":
        # What bash takes for the current word begins after the last break: that is what it replaces.
        done = _after_last(words[-1] if words else "", breaks)
        sys.stdout.write("".join(f"{candidate.value[done:]}\n" for candidate in candidates))
    else:
        sys.stdout.write("".join(f"{_LINES[shell](candidate)}\n" for candidate in candidates))
    return 0


def _for_zsh(candidate: Candidate) -> str:
    # _describe parts value and description at the first colon that is not escaped.
    value = candidate.value.replace("\\", "\\\\").replace(":", "\\:")
    return f"{value}:{candidate.about}" if candidate.about else value


def _for_fish(candidate: Candidate) -> str:
    return f"{candidate.value}\t{candidate.about}" if candidate.about else candidate.value


_LINES: dict[str, Callable[[Candidate], str]] = {"zsh": _for_zsh, "fish": _for_fish}


def split(line: str) -> list[str]:
    """The words of a line that is not finished: a quote may be open, and a blank at the end begins an empty word."""
    import shlex

    lexer = shlex.shlex(line, posix=True, punctuation_chars=False)
    lexer.whitespace_split = True
    lexer.commenters = ""
    words: list[str] = []
    try:
        words.extend(lexer)
    except ValueError:  # a quote or an escape without its end: what there is of the word
        return [*words, lexer.token]
    return [*words, ""] if not line or line[-1].isspace() else words


def _after_last(word: str, breaks: str) -> int:
    return max((word.rfind(char) + 1 for char in breaks if char in "=:"), default=0)


def complete(words: list[str]) -> list[Candidate]:
    """What the last of `words` could become, after the others. The words are those behind the program's name."""
    import typer

    from apflint.cli.app import app, keep_only
    from apflint.cli.commands import ALL

    *before, last = words
    keep_only(ALL, before)
    program: Any = typer.main.get_command(app)
    name = next((word for word in before if not word.startswith("-")), None)
    if name is None:
        return _options(program, last) if last.startswith("-") else _commands(program, last)
    command = program.commands.get(name)
    return _of_command(command, before[before.index(name) + 1 :], last) if command is not None else []


def _commands(program: Any, last: str) -> list[Candidate]:
    commands = program.commands.values()
    return _starting([Candidate(one.name, _first_sentence(one.help)) for one in commands if not one.hidden], last)


def _options(command: Any, last: str) -> list[Candidate]:
    import typer

    context = typer.Context(command, help_option_names=["-h", "--help"])
    return _starting(
        [
            Candidate(name, _first_sentence(parameter.help))
            for parameter in command.get_params(context)
            if parameter.param_type_name == "option"
            for name in (*parameter.opts, *parameter.secondary_opts)
            if name.startswith("--") or last == "-"
        ],
        last,
    )


def _of_command(command: Any, before: list[str], last: str) -> list[Candidate]:
    by_name = {name: one for one in command.params for name in (*one.opts, *one.secondary_opts)}
    positional = 0
    owed, option = 0, None  # how many more values the option before the cursor takes
    only_paths = False
    for word in before:
        if owed:
            owed -= 1
        elif only_paths or not word.startswith("-") or word == "-":
            positional += 1
        elif word == "--":
            only_paths = True
        elif word in by_name and not by_name[word].is_flag:
            option = by_name[word]
            owed = option.nargs
    if owed and option is not None:
        return _values(option, last)
    if last.startswith("--") and "=" in last and not only_paths:
        name, _, value = last.partition("=")
        option = by_name.get(name)
        if option is None or option.is_flag:
            return []
        return [Candidate(f"{name}={one.value}", one.about) for one in _values(option, value)]
    if last.startswith("-") and last != "-" and not only_paths:
        return _options(command, last)
    if last == "-":
        return _options(command, last)
    arguments = [one for one in command.params if one.param_type_name == "argument"]
    if not arguments:
        return []
    return _values(arguments[min(positional, len(arguments) - 1)], last, first=positional == 0)


def _values(parameter: Any, last: str, *, first: bool = True) -> list[Candidate]:
    """Values of an option or argument: its choices, or what its metavar stands for."""
    choices = getattr(parameter.type, "choices", None)
    if choices is not None:
        return _starting([Candidate(str(getattr(choice, "value", choice))) for choice in choices], last)
    metavar = str(parameter.metavar or parameter.name or "")
    if metavar.startswith("[VERB"):
        return _starting(_verbs(), last) if first else []
    if metavar == "RULES":
        done, comma, last = last.rpartition(",")
        return [Candidate(f"{done}{comma}{one.value}", one.about) for one in _starting(_rules(), last)]
    known = _KNOWN.get(metavar)
    return _starting(known(), last) if known else []


def _rules() -> list[Candidate]:
    from apflint.catalogue import read_rules

    found = list(read_rules())
    return [
        *(Candidate(one.id, one.name) for one in found),
        *(Candidate(one.name, one.id) for one in found),
    ]


def _releases() -> list[Candidate]:
    from apflint.releases import RELEASES

    return [Candidate(release.name) for release in reversed(RELEASES)]


def _versions() -> list[Candidate]:
    from apflint.releases import API_VERSIONS

    return [Candidate(version.name) for version in API_VERSIONS]


def _reports() -> list[Candidate]:
    from apflint.output.findings import FORMATS

    return [Candidate(f"{name}=") for name in FORMATS]


def _built_in() -> list[Candidate]:
    return [Candidate(f"defaults:{release.value}", "built-in objects") for release in _releases()]


def _kinds() -> list[Candidate]:
    from apflint.load.document import KINDS

    ours = [Candidate("config", "apflint.toml"), Candidate("test", "suites of apflint test")]
    return [*map(Candidate, KINDS), *(Candidate(f"{kind}List") for kind in KINDS), *ours]


def _verbs() -> list[Candidate]:
    return list(map(Candidate, ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")))


def _methods() -> list[Candidate]:
    return list(map(Candidate, ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")))


_KNOWN: dict[str, Callable[[], list[Candidate]]] = {
    "X.Y": _releases,
    "OLD NEW": _built_in,
    "OLD": _built_in,
    "NEW": _built_in,
    "V": _versions,
    "FORMAT=FILE": _reports,
    "[ID|NAME]": _rules,
    "KIND": _kinds,
    "METHOD": _methods,
}
"""What the values of an option or argument can be, by its metavar. Other metavars are files, or free text."""


def _starting(candidates: Iterable[Candidate], start: str) -> list[Candidate]:
    return [candidate for candidate in candidates if candidate.value.startswith(start)]


def _first_sentence(text: str | None) -> str:
    return " ".join((text or "").split("\n\n", 1)[0].split()).rstrip(".")

"""The manual pages of the commands for editors and shells."""

from __future__ import annotations

from apflint.cli.manual import Example, Page
from apflint.cli.manual.phrases import ANSWER, USAGE

PAGES = {
    "lsp": Page(
        about=(
            "Speaks the Language Server Protocol on standard input and output; an editor starts it. Findings and their fixes"
            " appear while you type, and hovering over a field or a rule explains it. The findings in an open directory are"
            " those of `apflint check`, with the settings of apflint.toml."
            "\n\nTell the editor to run `apflint lsp` for YAML and JSON. Neovim: vim.lsp.config('apflint', {cmd ="
            " {'apflint', 'lsp'}, filetypes = {'yaml', 'json'}}). Emacs: (add-to-list 'eglot-server-programs '(yaml-mode ."
            ' ("apflint" "lsp"))). For VS Code and Helix, see docs/language-server.md.'
        ),
        examples=(Example("what an editor runs; it waits for the editor's messages", "apflint lsp"),),
        exit_status=(
            ("0", "The editor ended the session."),
            ("1", "The editor disconnected without ending the session."),
            USAGE,
        ),
    ),
    "schema": Page(
        about=(
            "The YAML support of editors reads it: fields are completed and explained, and mistakes are marked."
            " `config` is for apflint.toml, and `test` for the files of `apflint test`."
        ),
        examples=(
            Example("into a file that the editor's settings name", "apflint schema FlowSchema > flowschema.json"),
            Example(
                "of an older API version",
                "apflint schema PriorityLevelConfiguration --api-version v1beta3 > levels.json",
            ),
            Example("of apflint's own settings", "apflint schema config > apflint-config.json"),
        ),
        exit_status=ANSWER,
    ),
    "completion": Page(
        about=(
            "It completes commands, options and their values: rule ids, releases of Kubernetes, API versions, formats."
            " Nothing is installed: the script goes to standard output."
        ),
        examples=(
            Example("bash: now, and for good in ~/.bashrc", 'eval "$(apflint completion bash)"'),
            Example("zsh: a file in a folder of $fpath, before compinit", "apflint completion zsh > _apflint"),
            Example("fish: in ~/.config/fish/completions", "apflint completion fish > apflint.fish"),
        ),
        exit_status=ANSWER,
    ),
}

"""The language server: what an editor asks while somebody types, answered from the same rules as `apflint check`.

Who reads it for the first time may follow one key: `server` gets the change, `session` keeps the text and starts a check,
`folders` runs it, and `wire` sends what was found.

The protocol, which no other module knows (they import pygls, which only the command `apflint lsp` pays for):
    server      the process, and what the editor tells
    answers     what the editor asks
    wire        our values as those of the protocol

What is open, and what is found in it:
    session     the documents, when a check starts, what of its answer is shown
    worker      the thread of the checks
    folders     which document belongs to which folder, all folders checked
    project     one folder as `apflint check` sees it, with open texts in place of its files
    diagnostics findings as an editor shows them

What a place in a half-typed text is about, without a parser:
    outline     the shape of a document from its indentation
    flow        the same of what is in braces and brackets
    spot        what could be written at an offset
    suppressing the same in comments that set findings aside
    fields      what the schema says of a field
    known       what is known of the cluster

What is said about it: hover, completion, navigation, actions

How editors count and write: positions, addresses, prose
"""

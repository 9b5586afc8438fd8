"""The language server: diagnostics, hover, completion, navigation and code actions with the rules of `apflint check`.

To follow a key press: `server` receives the change, `session` updates the document and schedules a check, `workspace` runs
the check, `diagnostics` converts the findings, and `session` publishes them.

    stdio            runs the server on standard input and output
    server           life cycle; documents and directories that the editor opens, changes and closes
    session          state of one editor: documents, scheduling of checks, published diagnostics
    workspace        checks the open directories, with open documents in place of files
    diagnostics      findings as diagnostics
    features/        answers to requests: hover, completion, navigation, code_actions
    cursor           what is at the cursor in a document that is being typed
    partial_yaml     structure of documents that may not parse
    schema_fields    fields of manifests, from the JSON Schemas
    priority_levels  names and descriptions of priority levels
    convert          URIs, positions, ranges, edits and Markdown of the protocol

Only `apflint lsp` imports this package, because pygls takes long to import.
"""

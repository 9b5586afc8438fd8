"""The language server: diagnostics, hover, completion, navigation and code actions with the rules of `apflint check`.

After a key press, `server` receives the change, and `check_scheduling` updates the document and schedules a check. Then
`workspace` runs the check, `diagnostics` converts the findings, and `check_scheduling` publishes the diagnostics.

    stdio                runs the server on standard input and output
    server               handles the life cycle, and changes of the open documents and directories
    check_scheduling     keeps the state of one editor: documents, scheduled checks, published diagnostics
    workspace            checks the open directories, with the text of open documents in place of their files
    diagnostics          converts findings to diagnostics
    features/            handle requests: hover, completion, navigation, code actions
    cursor               finds the field or comment at the cursor, even in incomplete text
    partial_yaml         finds the structure of incomplete YAML and JSON
    schema_fields        describes fields of manifests, from the JSON Schemas
    priority_levels      lists and describes priority levels
    protocol_conversion  converts URIs, positions, ranges, edits and Markdown

Only `apflint lsp` imports this package, because pygls takes long to import.
"""

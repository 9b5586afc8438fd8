"""What a server will do with a request: which FlowSchema takes it, which priority level, which flow, how many seats."""

"""The requests of an editor: each module answers one kind and registers with the server by decorator."""

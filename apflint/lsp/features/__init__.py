"""Handlers of requests from the editor. The modules register their functions with the server by its decorator."""

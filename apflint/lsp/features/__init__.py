"""Handlers of requests from the editor. Each module registers its handlers with the decorator `server.feature`."""

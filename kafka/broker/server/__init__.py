"""The network side of the broker: listeners, connections, dispatch of requests, and one handler for each API."""

"""Serving Fetch: sessions, reading within the limits, and waiting for more."""

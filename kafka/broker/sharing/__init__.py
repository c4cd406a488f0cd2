"""Reading for share groups (KIP-932): deliveries, sessions, fetches, acknowledgements."""

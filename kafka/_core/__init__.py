"""The client core: connections to the brokers of a cluster, metadata, routing, retries."""

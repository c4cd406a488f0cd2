"""Reading records from a cluster."""

"""The state of a cluster: topics, leaders, coordinators, the clock, and the store that keeps all of it."""

"""Group membership: the assignment of partitions, and committed offsets. See docs/internals/groups.rst for the map."""

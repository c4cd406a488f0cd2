"""Group membership: who reads which partitions, and what was committed. See docs/internals/groups.rst for the map."""

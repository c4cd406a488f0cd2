"""Assignors that keep partitions at their members as far as balance allows."""

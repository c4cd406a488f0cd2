"""Assignors that leave partitions where they are as far as balance allows."""

"""Attacks on the programs of the cookbook: what its pages promise holds when they are killed, paused and cut off."""

"""The former path of `kafka._core.topology`."""

from kafka._core.topology import Topology

__all__ = ["Topology"]

"""The former path of `kafka.testing.memory`."""

from kafka.testing.memory import FakeClock, MemoryNetwork, NothingWillHappenError

__all__ = ["FakeClock", "MemoryNetwork", "NothingWillHappenError"]

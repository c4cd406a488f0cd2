"""The former path of `kafka.testing.scripted_broker`."""

from kafka.testing.scripted_broker import HANG_UP, SILENCE, ScriptedBroker, Session

__all__ = ["HANG_UP", "SILENCE", "ScriptedBroker", "Session"]

"""The former path of `kafka._runtime.timers`."""

from kafka._runtime.timers import Backoff

__all__ = ["Backoff"]

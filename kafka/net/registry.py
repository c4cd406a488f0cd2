"""The former path of `kafka._core.metrics`."""

from kafka._core.metrics import SensorGroup, make_metrics

__all__ = ["SensorGroup", "make_metrics"]

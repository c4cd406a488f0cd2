"""A historic module path; see `kafka.legacy.default_records`."""

from kafka.legacy.default_records import *  # noqa: F403
from kafka.legacy.default_records import __all__  # noqa: F401

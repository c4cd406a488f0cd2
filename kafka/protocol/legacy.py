"""A historic module path; see `kafka.legacy.protocol_payloads`."""

from kafka.legacy.protocol_payloads import *  # noqa: F403
from kafka.legacy.protocol_payloads import __all__  # noqa: F401

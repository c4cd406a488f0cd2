"""The names that most API files use, for one import line in each of them."""

from __future__ import annotations

from kafka.broker.security.acls import CLUSTER_NAME, Operation, Resource
from kafka.broker.server.call import Call
from kafka.errors import BrokerResponseError, Code

__all__ = ["CLUSTER_NAME", "BrokerResponseError", "Call", "Code", "Operation", "Resource"]

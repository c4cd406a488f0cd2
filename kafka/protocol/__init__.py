"""Kafka's wire protocol, without I/O: messages to bytes and back, in every version since 0.8.

>>> from kafka.protocol.metadata import MetadataRequest
>>> request = MetadataRequest[1](['events'])
>>> MetadataRequest[1].decode(request.encode()) == request
True
>>> MetadataRequest
<class MetadataRequest api_key=3 versions 0-13 flexible 9+>

Each module holds one family of messages: ``metadata``, ``produce``, ``fetch``, ``offset``, ``commit``,
``group``, ``transaction``, ``sasl``, ``admin``, ``configs``, ``acl``, ``users`` and more; ``registry``
lists them all. A message is imported with its module and compiled when it is first used.
"""

from __future__ import annotations

from kafka.protocol._historic import historic_names

__getattr__ = historic_names(__name__)

"""A stream to a broker as frames: few large reads, gathered writes, and errors that say which broker.

A connection that is being set up (`kafka.net.connection_setup`) and one that is in use (`kafka.net.connection`) hold it
one after the other; each waits for the socket in its own way. It never blocks and watches nothing.
"""

from __future__ import annotations

from copy import copy
from itertools import islice
from typing import TYPE_CHECKING, Final, Protocol

from kafka.errors import KafkaConnectionError, KafkaError
from kafka.net.pipeline import FrameReader, SendQueue, Traffic

if TYPE_CHECKING:
    from kafka.net.settings import ConnectionContext
    from kafka.net.sockets import Stream
    from kafka.protocol.fields import Buffer

__all__ = ["Endpoint", "FrameStream", "with_broker"]

# The kernel takes 1024 pieces at once (IOV_MAX); more than a few dozen save nothing.
_PIECES: Final = 64


class Endpoint(Protocol):
    """The broker that a connection leads to; `str()` names it in errors."""

    @property
    def context(self) -> ConnectionContext:
        """The shared state of the client's connections."""
        ...

    @property
    def host(self) -> str:
        """The broker's host."""
        ...

    @property
    def port(self) -> int:
        """The broker's port."""
        ...

    @property
    def family(self) -> int:
        """The address family, AF_UNSPEC for any."""
        ...

    @property
    def traffic(self) -> Traffic:
        """The numbers of the broker's connections."""
        ...


class FrameStream:
    """Frames from and to the broker `endpoint` over one stream."""

    __slots__ = ("_endpoint", "_reader", "closed_by_peer", "stream")

    def __init__(self, endpoint: Endpoint, stream: Stream) -> None:
        self.stream = stream
        self.closed_by_peer = False
        """Whether the broker, and not this client, has ended the stream."""
        self._endpoint = endpoint
        self._reader = FrameReader(endpoint.context.settings.receive_max)

    @property
    def is_mid_frame(self) -> bool:
        """Whether a frame has begun to arrive and is not complete."""
        return self._reader.is_mid_frame

    def send(self, outgoing: SendQueue) -> int:
        """Send of the queue as much as the stream takes now; return the number of bytes."""
        stream, sent = self.stream, 0
        try:
            if stream.pending_out:
                stream.flush()
            while outgoing.waiting and not stream.pending_out:
                count = stream.sendmsg(list(islice(outgoing.waiting, _PIECES)))
                outgoing.sent(count)
                sent += count
        except BlockingIOError:
            pass
        except OSError as error:
            raise self._translate(error) from error
        self._endpoint.traffic.sent += sent
        return sent

    def receive(self) -> tuple[list[Buffer], bool]:
        """Read once; return the frames that are complete, and whether there may be more to read.

        BlockingIOError if nothing has arrived.
        """
        stream, reader, context = self.stream, self._reader, self._endpoint.context
        target = None if reader.body is None else reader.target()
        view = context.scratch if target is None else target
        try:
            count = stream.recv_into(view)
            if not count:
                raise ConnectionAbortedError("the broker closed it")
        except BlockingIOError:
            raise
        except OSError as error:
            self.closed_by_peer = True
            raise self._translate(error) from error
        self._endpoint.traffic.received += count
        # With less than there was room for, the socket is empty: another read would only fail.
        more = count == len(view) or stream.pending_in
        if target is None:
            return reader.receive(view[:count]), more
        frame = reader.filled(count)
        return ([] if frame is None else [frame]), more

    def _translate(self, error: OSError) -> KafkaError:
        endpoint = self._endpoint
        if endpoint.context.settings.use_tls:
            import ssl

            if isinstance(error, ssl.SSLError):
                from kafka.net.tls import tls_error

                return tls_error(error, endpoint.host)
        return KafkaConnectionError(f"the connection to {endpoint} ended: {error.strerror or error}")


def with_broker(broker: object, error: KafkaError) -> KafkaError:
    """Return the error with the broker's name in front, once, and all its facts.

    >>> str(with_broker("broker 1 (b1:9092)", KafkaConnectionError("refused")))
    'broker 1 (b1:9092): refused'
    """
    if str(broker) in str(error):
        return error
    prefixed = copy(error)
    prefixed.args = (f"{broker}: {error.args[0] if error.args else type(error).__name__}",)
    return prefixed

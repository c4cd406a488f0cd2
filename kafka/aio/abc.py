"""Base classes for what an application brings: a rebalance listener, a provider of OAuth tokens."""

from __future__ import annotations

from abc import ABC, abstractmethod

from kafka.consumer.subscription_state import ConsumerRebalanceListener as _PlainListener

__all__ = ["AbstractTokenProvider", "ConsumerRebalanceListener"]


class ConsumerRebalanceListener(_PlainListener):
    """Derive from this, override what matters, and give it to `AIOKafkaConsumer.subscribe`.

    The methods may be functions or coroutine functions. They run one after the other on the consumer's event loop,
    and may call any method of the consumer: commit, seek, position.

    >>> class Saver(ConsumerRebalanceListener):
    ...     async def on_partitions_revoked(self, revoked):
    ...         await consumer.commit()
    """


class AbstractTokenProvider(ABC):
    """Derive from this to bring OAuth tokens: ``sasl_oauth_token_provider``.

    >>> class FromService(AbstractTokenProvider):
    ...     async def token(self):
    ...         return await ask_the_service()
    """

    @abstractmethod
    async def token(self) -> str:
        """Return a token that is valid now; called whenever a connection authenticates or renews its session."""

    def extensions(self) -> dict[str, str]:
        """Return what the client sends to the broker beside the token (KIP-342)."""
        return {}

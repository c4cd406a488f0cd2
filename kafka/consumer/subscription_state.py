"""The historic place of the rebalance listener and the subscription."""

from kafka.consumer.listener import ConsumerRebalanceListener
from kafka.consumer.subscription import SubscriptionState

__all__ = ["ConsumerRebalanceListener", "SubscriptionState"]

"""The client that a face stands on: the library's, or one of the application's making (`kafka_client`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka._client import Client
from kafka.config import OPTIONS, Config
from kafka.errors import KafkaConfigurationError

if TYPE_CHECKING:
    from kafka.net.environment import Environment

__all__ = ["make_client"]


def make_client(config: Config, environment: Environment | None = None) -> Client:
    """Return the client for a face with this configuration; it has not looked for a broker yet.

    An application's own gets the options that were given and are a client's, and has to be a
    `KafkaClient`, which it is where the option is a class derived from that.
    """
    factory = config["kafka_client"]
    if factory is None:
        return Client(config, environment)
    options = {name: config[name] for name in config.given if "client" in OPTIONS[name].kinds}
    options.setdefault("client_id", config["client_id"])
    made = factory(**options, environment=environment, bootstrap=False)
    if not isinstance(made, Client):
        raise KafkaConfigurationError(
            f"kafka_client must make a KafkaClient, not a {type(made).__name__}", option="kafka_client"
        )
    return made

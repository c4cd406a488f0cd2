"""The clients of the Simple* era, before KafkaProducer and KafkaConsumer, on the connections of today.

Programs import them from ``kafka``, ``kafka.client``, ``kafka.consumer``, ``kafka.producer``, ``kafka.common``,
``kafka.context`` and ``kafka.util``. Everything here uses the public classes of the package, as a program would.
"""

from __future__ import annotations

import warnings

_warned: set[str] = set()


def warn_deprecated(name: str, successor: str, stacklevel: int = 3) -> None:
    """Warn at the first use of a class that a successor exists.

    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     warn_deprecated("OldClass", "NewClass")
    ...     warn_deprecated("OldClass", "NewClass")
    >>> [str(warning.message) for warning in caught]
    ['OldClass is deprecated: use NewClass']
    """
    if name not in _warned:
        _warned.add(name)
        warnings.warn(f"{name} is deprecated: use {successor}", DeprecationWarning, stacklevel=stacklevel)

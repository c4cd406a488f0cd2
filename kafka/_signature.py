"""How many arguments does a user's callable want? Asked once, when a client is made.

Trying a call and catching TypeError would hide the TypeErrors of the user's own code, and would cost every record.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

__all__ = ["Arity", "arity"]


class Arity(NamedTuple):
    """The number of positional arguments that a call must and may have."""

    required: int
    most: float

    def takes(self, count: int) -> bool:
        """Whether a call with `count` positional arguments is possible."""
        return self.required <= count <= self.most


def arity(function: Callable[..., object]) -> Arity | None:
    """The arity of a callable; None where Python cannot tell, as for some functions written in C.

    >>> arity(lambda topic, value, headers=None: value)
    Arity(required=2, most=3)
    >>> arity(lambda *records: records).takes(5)
    True
    """
    import inspect  # which takes longer to load than most of the library

    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    required, most = 0, 0.0
    for parameter in parameters:
        if parameter.kind is parameter.VAR_POSITIONAL:
            most = float("inf")
        elif parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            most += 1
            required += parameter.default is parameter.empty
        elif parameter.kind is parameter.KEYWORD_ONLY and parameter.default is parameter.empty:
            # No call with positional arguments alone can succeed.
            return Arity(required=len(parameters) + 1, most=0)
    return Arity(required, most if most == float("inf") else int(most))

"""Results of an administrator's calls: typed fields that are a mapping too, and an error for each item.

A `Result` is a dict with the keys of kafka-python 3, so that it can be compared, printed and written as JSON. Its keys
are attributes as well, which is what type checkers know. Names of kafka-python 2 answer to `[...]`, `get` and as
attributes, but are not among the keys.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, TypeVar, overload

from kafka.errors import BrokerResponseError, KafkaError, NoError, for_code

if TYPE_CHECKING:
    from typing_extensions import Self


class Result(dict[str, Any]):
    """Fields by name.

    >>> class Place(Result):
    ...     node_id: int
    ...     _aliases = {"id": "node_id"}
    >>> place = Place(node_id=1)
    >>> place, place.node_id, place["id"], "id" in place, place == {"node_id": 1}
    (Place(node_id=1), 1, 1, False, True)
    """

    __slots__ = ()
    _aliases: ClassVar[Mapping[str, str]] = {}
    """Old names, and the attributes that they stand for."""
    _hidden: ClassVar[frozenset[str]] = frozenset()
    """Fields that `repr` does not show: secrets."""

    def __init__(self, **fields: object) -> None:
        super().__init__(fields)

    @classmethod
    def of_entry(cls, entry: object, **fields: object) -> Self:
        """Make it from an entry of a response: these fields, and the others that it declares by their names."""
        for name in _declared(cls):
            if name not in fields:
                value = getattr(entry, name)
                fields[name] = list(value) if isinstance(value, list) else value
        return cls(**fields)

    def __missing__(self, key: str) -> Any:
        if key in self._aliases:
            return getattr(self, self._aliases[key])
        raise KeyError(key)

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("__"):
            try:
                return self[name]
            except KeyError:
                pass
        raise AttributeError(f"{type(self).__name__} has no field {name!r}; it has {', '.join(self)}")

    @overload
    def get(self, key: str, default: None = None, /) -> Any | None: ...
    @overload
    def get(self, key: str, default: object, /) -> Any: ...
    def get(self, key: str, default: object = None, /) -> Any:
        """Return a field by its present or old name."""
        try:
            return self[key]
        except KeyError:
            return default

    def __repr__(self) -> str:
        shown = (f"{name}={'<hidden>' if name in self._hidden else repr(value)}" for name, value in self.items())
        return f"{type(self).__name__}({', '.join(shown)})"


@cache
def _declared(kind: type) -> tuple[str, ...]:
    """Return the fields of a class of results: the public names that are annotated, and no slots."""
    return tuple(
        name
        for base in reversed(kind.__mro__)
        for name in getattr(base, "__annotations__", ())
        if not name.startswith("_") and name not in vars(base)
    )


class ItemResult(Result):
    """The outcome for one item of a call: ``error_code`` 0 and the other fields, or an error."""

    __slots__ = ("_error",)
    _item: ClassVar[str]
    """The format by which error messages name the item of an outcome."""
    _error: KafkaError
    error_code: int
    error_message: str | None

    @classmethod
    def failure(cls, error: KafkaError, **fields: object) -> Self:
        """Make the outcome of an item that failed with an error, which need not be a broker's."""
        made = cls(error_code=getattr(error, "errno", None) or -1, error_message=str(error), **fields)
        made._error = error
        return made

    def item(self) -> str:
        """Return what the outcome is about, for error messages."""
        return self._item.format(self)

    @property
    def ok(self) -> bool:
        """Whether the call succeeded for this item."""
        return not self.error_code

    @property
    def error(self) -> KafkaError | None:
        """The error of this item, None if there is none."""
        if not self.error_code:
            return None
        known: KafkaError | None = getattr(self, "_error", None)
        if known is not None:
            return known
        kind = for_code(self.error_code)
        return kind(f"{self.item()}: {self.get('error_message') or kind.description}")

    def raise_for_error(self) -> None:
        """Raise the error of this item, if there is one."""
        if self.error is not None:
            raise self.error.with_traceback(None)


class Outcome(str):
    """``OK`` or the text of an error, with the error itself.

    >>> Outcome(None), Outcome(None).ok
    ('OK', True)
    """

    __slots__ = ("error",)
    error: KafkaError | None

    def __new__(cls, error: KafkaError | None) -> Self:
        """Make it from an error."""
        made = super().__new__(cls, "OK" if error is None else str(error))
        made.error = error
        return made

    @property
    def ok(self) -> bool:
        """Whether the call succeeded for this item."""
        return self.error is None


_I = TypeVar("_I", bound=ItemResult)


class Results(list[_I]):
    """The outcomes for the items of a call, in the order in which the items were given.

    >>> Results([]).ok, Results([]).failed
    (True, [])
    """

    __slots__ = ()

    @property
    def ok(self) -> bool:
        """Whether the call succeeded for all items."""
        return all(item.ok for item in self)

    @property
    def failed(self) -> list[_I]:
        """The outcomes that are errors."""
        return [item for item in self if not item.ok]

    def raise_for_error(self) -> None:
        """Raise the first error of an item, if there is one; ``error.results`` is this list."""
        raise_failed(self, self)


def raise_first(answers: Iterable[object], results: object) -> None:
    """Raise the first answer that is an error, with the results of the whole call in ``error.results``."""
    for answer in answers:
        if isinstance(answer, KafkaError):
            answer.results = results
            raise answer


def raise_failed(items: Iterable[ItemResult], results: object) -> None:
    """Raise the first error of the items, with the results of the whole call in ``error.results``."""
    failed = [item.error for item in items if item.error is not None]
    if failed:
        _raise(failed, results)


def raise_refused(what: str, outcomes: Iterable[tuple[object, type[KafkaError]]], results: object) -> None:
    """Raise the first error of the items, whose outcomes are classes, with all outcomes in ``error.results``."""
    failed = []
    for item, kind in outcomes:
        if kind is not NoError:
            text = f"{what}: {'-'.join(map(str, item)) if isinstance(item, tuple) else item}"
            failed.append(kind(f"{text}: {kind.description}" if issubclass(kind, BrokerResponseError) else text))
    if failed:
        _raise(failed, results)


def _raise(failed: Sequence[KafkaError], results: object) -> NoReturn:
    error = failed[0]
    if len(failed) > 1:
        text = f"{error.args[0]} ({len(failed)} items failed; error.results has the outcome of each)"
        error = type(error)(text)
    error.results = results
    raise error.with_traceback(None)  # a result can be asked any number of times


def error_of(code: int, what: str, message: str | None = None) -> KafkaError | None:
    """Return the error of a code in a response, None for 0.

    >>> print(error_of(16, "group 'g'"))
    [Error 16] NotCoordinatorError: group 'g': The broker is not, or no longer, the coordinator.
    """
    if not code:
        return None
    kind = for_code(code)
    return kind(f"{what}: {message or kind.description}")

"""Random messages of any class and version, made from the definitions."""

from __future__ import annotations

import random
import struct
import uuid
from typing import Any

from kafka.protocol import types
from kafka.protocol.codec.layout import FIXED_FORMATS, WireField, element_as_field, layout_of
from kafka.protocol.struct import StructMeta

_TEXTS = ("", "a", "topic-1", "naïve – ☃", "x" * 127, "y" * 130, "z" * 300)


def random_message(cls: StructMeta, rng: random.Random, *, unknown_tags: bool = True, depth: int = 0) -> Any:
    """Return an instance of a bound class with every field set to something."""
    layout = layout_of(cls)
    values = {
        w.name: _value(w, rng, depth, unknown_tags) for w in (*layout.plain, *layout.tagged) if rng.random() < 0.9
    }
    message = cls(**values)
    if layout.flexible and unknown_tags and rng.random() < 0.1:
        used = {w.field.tag for w in layout.tagged}
        free = [tag for tag in (0, 1, 5, 200, 70_000) if tag not in used]
        message.unknown_tags = {tag: rng.randbytes(rng.choice((0, 3, 200))) for tag in rng.sample(free, 2)}
    return message


def _value(wire: WireField, rng: random.Random, depth: int, unknown_tags: bool) -> Any:
    if wire.nullable and rng.random() < 0.15:
        return None
    if wire.is_array:
        element = element_as_field(wire)
        most = 3 if wire.is_struct else 40
        count = rng.choice((0, 1, 2, most)) if depth < 2 else rng.choice((0, 1))
        return [_value(element, rng, depth + 1, unknown_tags) for _ in range(count)]
    if wire.is_struct:
        return random_message(wire.element, rng, unknown_tags=unknown_tags, depth=depth + 1)
    if wire.element is types.String:
        return rng.choice(_TEXTS)
    if wire.element in (types.Bytes, types.Records):
        return rng.randbytes(rng.choice((0, 1, 100, 126, 127, 128, 20_000 if depth == 0 else 200)))
    return random_number(wire.element, rng)


def random_number(of: Any, rng: random.Random) -> Any:
    """Return a value of a type of fixed width, its limits now and then."""
    if of is types.Boolean:
        return rng.random() < 0.5
    if of is types.Uuid:
        return uuid.UUID(int=rng.getrandbits(128))
    if of is types.Float64:
        return rng.choice((0.0, -1.5, 1e300, rng.random()))
    code = FIXED_FORMATS[of]
    bits = 8 * struct.calcsize(">" + code)
    low, high = (0, (1 << bits) - 1) if code.isupper() else (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
    return rng.choice((low, high, 0, min(1, high), rng.randint(low, high)))

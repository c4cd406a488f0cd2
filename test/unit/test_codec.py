from __future__ import annotations

import gzip
import importlib.util
import sys
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka import codec
from kafka.codec._common import load
from kafka.codec._lz4 import xxh32
from kafka.codec._zstd import ZSTD_MODULES
from kafka.errors import CorruptRecordError, IllegalArgumentError, UnsupportedCodecError

PAYLOAD = b"a payload that repeats itself, " * 3000
NAMES = ["gzip", "snappy", "lz4", "zstd"]
LEVELS = {"gzip": [-1, 1, 9], "snappy": [None], "lz4": [1, 9, 17], "zstd": [-5, 1, 22]}


def pack(name: str, data: bytes, level: int | None = None) -> bytes:
    return codec.compressor(codec.codec_id(name), level)(data)


def unpack(name: str, data: bytes, limit: int = codec.DEFAULT_LIMIT) -> bytes:
    return codec.decompressor(codec.codec_id(name))(data, limit)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_packed_values_unpack(name: str, kind: type) -> None:
    for data in (b"", b"x", PAYLOAD):
        for level in LEVELS[name]:
            assert unpack(name, kind(pack(name, kind(data), level))) == data


@settings(deadline=None, max_examples=50)
@given(st.sampled_from(NAMES), st.binary(max_size=300))
def test_any_bytes_survive(name: str, data: bytes) -> None:
    assert unpack(name, pack(name, data)) == data


@settings(deadline=None, max_examples=120)
@given(st.sampled_from(NAMES), st.integers(0, 400), st.integers(0, 255), st.booleans())
def test_damaged_data_raises_corrupt_record_error(name: str, at: int, byte: int, cut: bool) -> None:
    data = bytearray(pack(name, PAYLOAD[:2000]))
    at %= len(data)
    if cut:
        del data[at:]
    else:
        data[at] = byte
    try:
        unpack(name, bytes(data), 1 << 20)
    except CorruptRecordError as err:
        assert name in err.reason


@pytest.mark.parametrize("name", NAMES)
def test_truncated_data_is_never_taken_for_whole(name: str) -> None:
    data = pack(name, PAYLOAD)
    for size in [0, 1, 4, 8, 17, len(data) // 2, len(data) - 1]:
        try:
            found = unpack(name, data[:size])
        except CorruptRecordError:
            continue
        # Xerial's framing has no end mark: cut between two blocks it is just shorter. The batch's count shows it.
        assert name == "snappy"
        assert len(found) < len(PAYLOAD)


@pytest.mark.parametrize("name", NAMES)
def test_more_than_the_limit_is_refused(name: str) -> None:
    data = pack(name, PAYLOAD)
    assert unpack(name, data, len(PAYLOAD)) == PAYLOAD
    with pytest.raises(CorruptRecordError, match="allowed"):
        unpack(name, data, len(PAYLOAD) - 1)


def test_unknown_codecs_are_named() -> None:
    with pytest.raises(UnsupportedCodecError, match="'brotli'"):
        codec.codec_id("brotli")
    with pytest.raises(UnsupportedCodecError):
        codec.codec_id(9)
    with pytest.raises(UnsupportedCodecError, match="codec 5"):
        codec.decompressor(5)
    with pytest.raises(UnsupportedCodecError):
        codec.compressor(0)


@pytest.mark.parametrize(
    ("name", "level"), [("gzip", 0), ("gzip", 10), ("lz4", 0), ("lz4", 18), ("zstd", 23), ("snappy", 1)]
)
def test_levels_are_checked(name: str, level: int) -> None:
    with pytest.raises(IllegalArgumentError, match=name):
        pack(name, b"", level)


@pytest.mark.parametrize(
    ("name", "modules", "package"),
    [
        ("snappy", ["snappy"], "python-snappy"),
        ("lz4", ["lz4", "lz4.frame"], "lz4"),
        ("zstd", ["compression.zstd", "backports.zstd", "zstandard"], "zstandard"),
    ],
)
def test_missing_package_is_named(monkeypatch: pytest.MonkeyPatch, name: str, modules: list[str], package: str) -> None:
    data = pack(name, PAYLOAD)
    for module in modules:
        monkeypatch.setitem(sys.modules, module, None)
    assert not codec.has_codec(name)
    for act in (lambda: pack(name, PAYLOAD), lambda: unpack(name, data)):
        with pytest.raises(UnsupportedCodecError, match=f"pip install {package}") as caught:
            act()
        assert caught.value.codec == name


def test_nothing_is_imported_before_it_is_needed() -> None:
    import subprocess

    heavy = ("lz4", "snappy", "zstandard", "crc32c")
    program = f"import kafka.codec, sys; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# gzip


def test_gzip_members_and_padding_are_read() -> None:
    data = gzip.compress(b"one ") + gzip.compress(b"two") + bytes(20)
    assert codec.gzip_decode(data) == b"one two"


def test_gzip_of_equal_data_is_equal() -> None:
    assert codec.gzip_encode(PAYLOAD) == codec.gzip_encode(PAYLOAD)
    assert gzip.decompress(codec.gzip_encode(PAYLOAD, 9)) == PAYLOAD


# snappy


def test_snappy_is_framed_as_xerial_does() -> None:
    data = codec.snappy_encode(PAYLOAD, xerial_blocksize=1024)
    assert data[:16] == b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01"
    assert codec.snappy_decode(data) == PAYLOAD


def test_raw_snappy_is_read_and_written() -> None:
    raw = codec.snappy_encode(PAYLOAD, xerial_compatible=False)
    assert not raw.startswith(b"\x82SNAPPY")
    assert codec.snappy_decode(raw) == PAYLOAD


def test_xerial_streams_glued_together_are_read() -> None:
    assert codec.snappy_decode(codec.snappy_encode(b"one ") + codec.snappy_encode(b"two")) == b"one two"


# lz4


def test_lz4_frame_has_the_flags_that_kafka_reads() -> None:
    flags, blocks = codec.lz4_encode(PAYLOAD)[4:6]
    # Version 1, blocks independent; no checksums, no content size, no dictionary. Blocks of 64 KiB.
    assert (flags, blocks) == (0x60, 0x40)


def test_lz4_header_checksum_of_early_kafka() -> None:
    right, wrong = codec.lz4_encode(b"kafka"), codec.lz4_encode_old_kafka(b"kafka")
    assert right[6] == 0x82  # of flags 0x60, 0x40, by the standard
    assert wrong[6] != right[6]
    assert wrong[:6] + wrong[7:] == right[:6] + right[7:]
    assert codec.lz4_decode_old_kafka(wrong) == codec.lz4_decode_old_kafka(right) == b"kafka"
    with pytest.raises(CorruptRecordError):
        codec.lz4_decode(wrong)


def test_lz4_frames_with_size_and_checksums_are_read() -> None:
    import lz4.frame

    data = lz4.frame.compress(PAYLOAD, store_size=True, content_checksum=True, block_checksum=True, block_linked=True)
    assert codec.lz4_decode(data) == PAYLOAD
    assert codec.lz4_decode_old_kafka(data) == PAYLOAD
    assert codec.lz4_decode(data + codec.lz4_encode(b"more")) == PAYLOAD + b"more"


# The published test vectors; the last one is long enough for the four lanes.
@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b"", 0x02CC5D05),
        (b"a", 0x550D7456),
        (b"abc", 0x32D153FF),
        (b"Nobody inspects the spammish repetition", 0xE2293B2F),
    ],
)
def test_xxh32(data: bytes, value: int) -> None:
    assert xxh32(data) == value


# zstd


def test_zstd_frames_without_size_and_several_are_read() -> None:
    zstandard = pytest.importorskip("zstandard")  # a dependency before Python 3.14 alone

    packer = zstandard.ZstdCompressor().compressobj()
    stream = packer.compress(PAYLOAD) + packer.flush()
    assert zstandard.frame_content_size(stream) == -1
    assert codec.zstd_decode(stream + codec.zstd_encode(b"more")) == PAYLOAD + b"more"


@pytest.mark.skipif(sys.version_info < (3, 14), reason="the standard library has zstd since 3.14")
def test_zstd_of_the_standard_library_is_preferred() -> None:
    assert load(4, *ZSTD_MODULES).__name__ == "compression.zstd"


def _stdlib_zstd(monkeypatch: pytest.MonkeyPatch) -> None:
    """Install a module with the interface of compression.zstd where this Python has none."""
    import types

    zstandard = pytest.importorskip("zstandard")

    class Decompressor:
        def __init__(self) -> None:
            self._inner = zstandard.ZstdDecompressor().decompressobj()
            self.eof, self.unused_data = False, b""

        def decompress(self, data: bytes, max_length: int = -1) -> bytes:
            found = self._inner.decompress(data)
            self.eof, self.unused_data = self._inner.eof, self._inner.unused_data
            return found[:max_length]

    module = types.ModuleType("compression.zstd")
    module.ZstdDecompressor = Decompressor
    module.ZstdError = zstandard.ZstdError
    module.compress = lambda data, level: zstandard.ZstdCompressor(level=level).compress(data)
    monkeypatch.setattr("kafka.codec._common._loaded", {})  # it remembers what was found before
    monkeypatch.setitem(sys.modules, "compression", types.ModuleType("compression"))
    monkeypatch.setitem(sys.modules, "compression.zstd", module)


@pytest.mark.skipif(importlib.util.find_spec("zstandard") is None, reason="needs zstandard")
def test_zstd_module_with_the_interface_of_the_standard_library(monkeypatch: pytest.MonkeyPatch) -> None:
    _stdlib_zstd(monkeypatch)
    data = codec.zstd_encode(PAYLOAD) + codec.zstd_encode(b"more", 19)
    assert codec.zstd_decode(data) == PAYLOAD + b"more"
    for broken in (data[:-1], b"", b"garbage"):
        with pytest.raises(CorruptRecordError):
            codec.zstd_decode(broken)
    with pytest.raises(CorruptRecordError, match="allowed"):
        unpack("zstd", data, 1000)


def test_historic_names() -> None:
    assert codec.has_gzip()
    assert all(isinstance(has(), bool) for has in (codec.has_snappy, codec.has_lz4, codec.has_zstd))
    assert codec.lz4f_decode is codec.lz4_decode


def test_a_module_that_is_not_there_is_not_looked_for_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    load(4, "no_such_module", "zlib")
    asked: list[str] = []
    monkeypatch.setattr("importlib.import_module", asked.append)
    assert load(4, "no_such_module", "zlib") is zlib
    assert asked == []


def test_zstd_frames_of_many_blocks_and_of_few_come_out_whole() -> None:
    for size in (0, 1, 128 * 1024, 128 * 1024 * 255, 128 * 1024 * 257):
        packed = codec.zstd_encode(bytes(size))
        assert codec.zstd_decode(packed + packed[:]) == bytes(2 * size)


class _Counted:
    """Stands for a package's decompressor, and counts the bytes that it is given and has to copy."""

    handled = 0

    def __init__(self, inner: object) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> object:
        return getattr(self._inner, name)

    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        found = self._inner.decompress(data, max_length)  # type: ignore[attr-defined]
        _Counted.handled += len(data) + len(self._inner.unused_data or b"")  # type: ignore[attr-defined]
        return found


@pytest.mark.parametrize("name", ["gzip", "zstd"])
def test_streams_of_many_members_take_work_in_proportion(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    if name == "zstd":
        _stdlib_zstd(monkeypatch)
        module = load(4, *ZSTD_MODULES)
        kind = "ZstdDecompressor"
    else:
        module, kind = zlib, "decompressobj"
    original = getattr(module, kind)
    empty, full = pack(name, b""), pack(name, b"some content")
    monkeypatch.setattr(module, kind, lambda *args: _Counted(original(*args)))
    for members, content in ((empty * 4000, b""), (full * 4000, b"some content" * 4000), (empty * 16_000, b"")):
        _Counted.handled = 0
        assert unpack(name, members) == content
        assert _Counted.handled < 40 * len(members)


def test_lz4_streams_of_many_frames_are_not_copied_and_take_one_call_each(monkeypatch: pytest.MonkeyPatch) -> None:
    module = pytest.importorskip("lz4.frame")
    original, calls = module.decompress_chunk, []

    def decompress_chunk(context: object, data: memoryview, **kwargs: int) -> tuple[bytes, int, bool]:
        calls.append(data.obj)
        return original(context, data, **kwargs)

    monkeypatch.setattr(module, "decompress_chunk", decompress_chunk)
    for content in (b"", b"some content"):
        calls.clear()
        stream = pack("lz4", content) * 4000
        assert unpack("lz4", stream) == content * 4000
        assert len(calls) == 4000
        assert all(data is stream for data in calls)

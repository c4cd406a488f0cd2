"""The table of promises in the documentation names tests that exist, on both faces."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def test_each_promise_has_its_tests() -> None:
    text = (ROOT / "docs/internals/share.rst").read_text(encoding="utf-8")
    rows = re.findall(r'^   (S\d+), "([^"]*)", ``([^`]+)``, (?:``([^`]+)``|"none: [^"]+")$', text, re.MULTILINE)
    assert [row[0] for row in rows] == [f"S{number}" for number in range(1, 32)]
    for name, _, embedded, real in rows:
        for test, home in ((embedded, "test/embedded/share"), (real, "test/real/share")):
            if test:
                place, _, function = test.partition("::")
                path = ROOT / place[1:] if place.startswith("/") else ROOT / home / place
                text = path.read_text(encoding="utf-8")
                if place == "test_promises.py":  # it runs what the embedded column has, under the same name
                    assert f"\n{function.removeprefix('test_')}\n" in text, f"{name}: {test}"
                    path = ROOT / "test/embedded/share/test_share_consumer.py"
                    text = path.read_text(encoding="utf-8")
                assert f"def {function}(" in text, f"{name}: {test}"


def test_the_promises_run_on_both_faces() -> None:
    alone: list[str] = []
    for place in ("embedded/share/test_share_consumer", "real/share/test_promises", "real/share/test_share_consumer"):
        text = (ROOT / f"test/{place}.py").read_text(encoding="utf-8")
        assert 'FACES = "both"' in text
        alone += re.findall(r"^@pytest.mark.one_face\ndef (\w+)", text, re.MULTILINE)
    assert alone == ["test_another_thread_may_acknowledge_and_nothing_else"]

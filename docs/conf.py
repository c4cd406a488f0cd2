"""Sphinx settings."""

import re
import sys
from pathlib import Path
from typing import Any

from kafka.version import __version__

# The charts of docs/benchmarks.rst are drawn by the package benchmarks of the repository.
sys.path[:0] = [str(Path(__file__).parent / "_ext"), str(Path(__file__).parents[1])]

project = "purekafka"
author = "The purekafka developers"
copyright = "The purekafka developers, Apache License 2.0"
release = version = __version__

extensions = ["pictures", "tables", "sphinx.ext.autodoc", "sphinx.ext.doctest"]
exclude_patterns = ["_build"]
default_role = "code"
smartquotes = False  # "--" is the beginning of an option, not a dash
highlight_language = "none"  # code names its language

html_theme = "furo"
html_title = f"purekafka {version}"
html_static_path = ["_static"]
html_css_files = ["pictures.css"]

autodoc_typehints = "signature"  # lists of parameters below each signature made pages twice as long
maximum_signature_line_length = 110
autodoc_member_order = "bysource"

# A reference that leads nowhere is an error (`make docs` runs with -W), apart from these.
nitpicky = True
nitpick_ignore_regex = [
    # The build uses no network, so it has no inventory of Python's and Spark's own documentation.
    (
        "py:.*",
        r"(abc|_?asyncio|collections|selectors|concurrent|datetime|enum|os|pathlib|random|socket|ssl|threading|typing|uuid|weakref)\..*",
    ),
    (
        "py:.*",
        r"(pyarrow|pyspark|numpy)\..*|Column|DataSourceStreamWriter|Query(Idle|Progress|Started|Terminated)Event|SparkSession|StreamingQuery|StructType",
    ),
    ("py:.*", r"FileDescriptorLike|Path|Random|UUID|defaultdict"),
    # Parameters of types, and types of the core that appear in signatures which applications do not call.
    (
        "py:class",
        r"(.*\.)?(FutureProduceResult|ProducerBatch)|(.*\.)?_?[A-Z]|[KVT]_co|(.*\.)?(Future|Record|Request|Response)T|Self",
    ),
    ("py:.*", r"kafka\.(_core|_runtime|net)\..*"),
    # Messages of the protocol, which the reference lists by their APIs, and their structs.
    ("py:class", r"[A-Z]\w+(Request|Response)(\.\w+)?"),
    (
        "py:class",
        r"ApiVersions|AbstractContextManager|ApiVersionsResponse|Call|Callback|Clock|Config|Connection|ConnectionContext|Delivered|Deserializes|Environment|ProducerBatch|Answer|Registration|Release|RequestHeader|Response|Results|TopicName",
    ),
    ("py:(class|func|data)", r"(.*\.)?(SealedBatch|Deserialize|record_size|FULL)"),
    ("py:class", r"CollectorRegistry|Labels|Metric|ProcessBlock"),
    ("py:class", r"kafka\.protocol\.admin\.DescribeLogDirsResponse|kafka\.config\.resolve\.Config"),
    ("py:class", r"(.*\.)?(ApiTable|BinScheme|Cluster|HistogramWindow|LogEntry|Members|Merged|Order|Progress|Window)"),
    ("py:.*", r"(.*\.)?(record_size|FULL|SealedBatch|Deserialize)"),
    (
        "py:class",
        r"(.*\.)?(ConsumerProtocolMember(Assignment|Metadata)|NodeId|datetime|array|BatchHeader|Api|Struct|Results|Commits|ConsumerRecord|Request|Buffer|Headers|Lifecycle|MetadataEntries|RecordBatchBuilder|BatchedRecord|SealedBatch|Deserialize)",
    ),
]


def show_calls(
    _app: Any, _what: str, _name: str, _obj: Any, _options: Any, signature: str | None, returns: str | None
) -> Any:
    """Show a default by what makes it, a class by its name, a function by dots: Sphinx could not parse them."""
    shown = re.sub(r"<(?:\w+\.)*(\w+) object>", r"\1()", signature or "")
    shown = re.sub(r"<class '(?:\w+\.)*(\w+)'>", r"\1", shown)
    return re.sub(r"<function [\w.]*<lambda>>", "...", shown) or None, returns


def leave_out_numbers(_app: Any, _what: str, _name: str, _obj: Any, _options: Any, lines: list[str]) -> None:
    """Leave out what Python says about each field of a named tuple that has no docstring."""
    if lines and lines[0].startswith("Alias for field number "):
        lines.clear()


def setup(app: Any) -> None:
    """Have each signature and each docstring looked through."""
    app.connect("autodoc-process-docstring", leave_out_numbers)
    app.connect("autodoc-process-signature", show_calls)

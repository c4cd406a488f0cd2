"""Write the broker's error codes and classes into kafka/errors.py, and their table into the docs, from Kafka's list.

    mvn dependency:copy -Dartifact=org.apache.kafka:kafka-clients:4.3.1 -DoutputDirectory=DIR
    mvn dependency:copy -Dartifact=org.slf4j:slf4j-api:1.7.36 -DoutputDirectory=DIR
    python tools/generate_errors.py --classpath 'DIR/*' --save tools/errors/kafka-4.3.1.json

Without ``--classpath`` the newest committed table in tools/errors/ is read, so that no Java is needed. Descriptions
are ours and live in tools/errors/words.py; a code that has none stops the program. Running twice changes nothing.
"""

import argparse
import json
import re
import runpy
import subprocess
import sys
import textwrap
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent
MODULE = ROOT / "kafka" / "errors.py"
DOCS = ROOT / "docs" / "reference" / "error-codes.inc"
WORDS = runpy.run_path(str(HERE / "errors" / "words.py"))
LINE = 120
BEGIN = "# --- broker errors, written by tools/generate_errors.py: begin ---\n"
END = "# --- broker errors, written by tools/generate_errors.py: end ---\n"


def from_java(classpath: str) -> list[dict]:
    """The table of the kafka-clients jar on the class path."""
    command = ["java", "-cp", classpath, str(HERE / "errors" / "DumpErrors.java")]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def newest_table() -> Path:
    """The committed table of the newest Kafka."""

    def release(path: Path) -> list[int]:
        return [int(part) for part in re.findall(r"\d+", path.stem)]

    return max((HERE / "errors").glob("kafka-*.json"), key=release)


def class_name(name: str) -> str:
    """The name of the Python class for a code's name: OFFSET_OUT_OF_RANGE -> OffsetOutOfRangeError."""
    if name in WORDS["CLASS_NAMES"]:
        return WORDS["CLASS_NAMES"][name]
    camel = "".join(word.capitalize() for word in name.split("_"))
    return camel if camel.endswith("Error") else camel + "Error"


def bases(entry: dict) -> list[str]:
    """The bases of the class: its family by who has to act, then BrokerResponseError."""
    name = entry["name"]
    if name in WORDS["FAMILIES"]:
        family = WORDS["FAMILIES"][name]
    else:
        by_ancestor = WORDS["FAMILY_BY_ANCESTOR"]
        family = next((f for ancestor, f in by_ancestor.items() if ancestor in entry["ancestors"]), None)
    found = [family] if family else []
    if name in WORDS["EXTRA_BASES"]:
        found.append(WORDS["EXTRA_BASES"][name])
    # AuthorizationError is a BrokerResponseError already, as it was in older releases.
    return found if family == "AuthorizationError" else [*found, "BrokerResponseError"]


def python_class(entry: dict) -> str:
    """The source of one class."""
    name = entry["name"]
    arguments = f"{', '.join(bases(entry))}, code=Code.{name}"
    head = f"class {class_name(name)}({arguments}):"
    if len(head) > LINE:
        head = f"class {class_name(name)}(\n    {arguments}\n):"
    unknown = "\n    outcome_unknown = True\n" if name in WORDS["OUTCOME_UNKNOWN"] else ""
    return f'{head}\n    """{WORDS["DESCRIPTIONS"][name]}"""\n{unknown}'


def code_enum(table: list[dict]) -> str:
    """The source of the enumeration of all codes."""
    members = "\n".join(f"    {entry['name']} = {entry['code']}" for entry in table)
    return f"""class Code(IntEnum):
    \"\"\"Every error code of the protocol under Kafka's name for it.

    >>> Code.NOT_LEADER_OR_FOLLOWER, int(Code.NOT_LEADER_OR_FOLLOWER)
    (<Code.NOT_LEADER_OR_FOLLOWER: 6>, 6)
    >>> for_code(Code.NOT_LEADER_OR_FOLLOWER)
    <class 'kafka.errors.NotLeaderOrFollowerError'>
    \"\"\"

{members}
"""


def block(table: list[dict]) -> str:
    """The source between the markers."""
    return "\n\n" + "\n\n".join([code_enum(table), *(python_class(entry) for entry in table)]) + "\n\n"


def docs_table(table: list[dict]) -> str:
    """The codes as an rst table."""
    out = [".. list-table::\n   :header-rows: 1\n   :widths: 6 34 20 40\n\n"]
    out.append("   * - Code\n     - Class\n     - Family\n     - Meaning\n")
    for entry in table:
        family = bases(entry)[0]
        meaning = textwrap.fill(WORDS["DESCRIPTIONS"][entry["name"]], 100, subsequent_indent="       ")
        out.append(f"   * - {entry['code']}\n     - ``{class_name(entry['name'])}``\n")
        out.append(f"     - {'' if family == 'BrokerResponseError' else f'``{family}``'}\n     - {meaning}\n")
    return "".join(out)


def regenerate(source: str, table: list[dict]) -> str:
    """The text of kafka/errors.py with the block replaced."""
    missing = [entry["name"] for entry in table if entry["name"] not in WORDS["DESCRIPTIONS"]]
    if missing:
        sys.exit(f"Describe these codes in tools/errors/words.py first: {', '.join(missing)}")
    head, rest = source.split(BEGIN)
    return head + BEGIN + block(table) + END + rest.split(END)[1]


def outputs(table: list[dict]) -> dict[Path, str]:
    """What each written file has to hold."""
    return {MODULE: regenerate(MODULE.read_text(encoding="utf-8"), table), DOCS: docs_table(table)}


def main() -> int:
    """Write the files, or with ``--check`` say which of them differ."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--classpath", help="kafka-clients and slf4j-api jars, as java -cp takes them")
    parser.add_argument("--table", type=Path, default=None, help="a table in JSON, as --save writes it")
    parser.add_argument("--save", type=Path, help="where to keep the table read from the class path")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if anything would change")
    options = parser.parse_args()
    if options.classpath:
        table = from_java(options.classpath)
        if options.save:
            rows = ",\n".join("  " + json.dumps(entry) for entry in table)
            options.save.write_text(f"[\n{rows}\n]\n", encoding="utf-8")
    else:
        table = json.loads((options.table or newest_table()).read_text(encoding="utf-8"))
    stale = {
        path: text
        for path, text in outputs(table).items()
        if not path.exists() or path.read_text(encoding="utf-8") != text
    }
    for path, text in stale.items():
        print("differs:" if options.check else "wrote:", path.relative_to(ROOT))
        if not options.check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    return 1 if stale and options.check else 0


if __name__ == "__main__":
    sys.exit(main())

"""Write docs/reference/configuration-options.inc and librdkafka-options.inc from the tables in kafka.config.

Running twice changes nothing; a test compares the file with the table.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
OUTPUT = ROOT / "docs" / "reference" / "configuration-options.inc"

if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    from kafka.config import render_rst
    from kafka.config.librdkafka_options import render_librdkafka_rst

    OUTPUT.write_text(render_rst(), encoding="utf-8")
    OUTPUT.with_name("librdkafka-options.inc").write_text(render_librdkafka_rst(), encoding="utf-8")

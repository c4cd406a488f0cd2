"""Write docs/reference/configuration-options.inc from the table in kafka.config.

Running twice changes nothing; a test compares the file with the table.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
OUTPUT = ROOT / "docs" / "reference" / "configuration-options.inc"

if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    from kafka.config import render_rst

    OUTPUT.write_text(render_rst(), encoding="utf-8")

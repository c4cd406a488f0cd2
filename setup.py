"""Metadata of the distribution ``purekafka``; the import package is ``kafka``."""

import re
from pathlib import Path

from setuptools import find_packages, setup

HERE = Path(__file__).parent
VERSION = re.search(r'__version__ = "([^"]+)"', (HERE / "kafka" / "version.py").read_text(encoding="utf-8")).group(1)

# A consumer cannot know which codec it will meet, so every codec comes with a plain install.
# From Python 3.14 on the standard library brings zstd itself.
CODECS = [
    "crc32c>=2.3",
    "lz4>=4.0",
    "python-snappy>=0.7",
    'zstandard>=0.21; python_version < "3.14"',
]

EXTRAS = {
    "gssapi": ["gssapi>=1.8"],
    "spark": ["pyspark>=4.0", "pyarrow>=15", "numpy>=1.24"],
    "columns": ["pyarrow>=15", "numpy>=1.24"],
    "otel": ["opentelemetry-api>=1.27"],
    "prometheus": ["prometheus-client>=0.20"],
    "registry": ["jsonschema>=4.18", "protobuf>=4.22"],
    "docs": ["furo>=2024.8", "sphinx>=7"],
    "dev": [
        "anyio>=4",
        "build>=1",
        "coverage>=7",
        "fastapi>=0.110",
        "httpx>=0.27",
        "hypothesis>=6.90",
        "import-linter>=2.0",
        "jsonschema>=4.18",
        "mypy>=1.13",
        "numpy>=1.24",
        "opentelemetry-distro>=0.60b0",
        "opentelemetry-proto>=1.39",
        "opentelemetry-sdk>=1.39",
        "prometheus-client>=0.20",
        "protobuf>=4.22",
        "pyarrow>=15",
        "pyright[nodejs]>=1.1.400",
        "pyspark>=4.0",
        "pytest>=8.4",
        "pytest-randomly>=3.15",
        "pytest-timeout>=2.3",
        "pytest-xdist>=3.5",
        "ruff==0.17.6",
        "tornado>=6",
        "tox>=4",
        "twine>=6",
        "typing_extensions>=4.6",
        'uvloop>=0.19; sys_platform != "win32"',
    ],
}
# Without gssapi, which is compiled against the system's Kerberos: a slim image has neither that nor a compiler.
EXTRAS["all"] = sorted({need for name in ("columns", "registry", "spark") for need in EXTRAS[name]})

setup(
    name="purekafka",
    version=VERSION,
    description="A Kafka client, an embedded broker and a Spark data source in pure Python",
    long_description=(HERE / "README.rst").read_text(encoding="utf-8"),
    long_description_content_type="text/x-rst",
    license="Apache-2.0",
    license_files=["LICENSE"],
    author="The purekafka developers",
    maintainer="The purekafka developers",
    project_urls={
        "Documentation": "https://purekafka.readthedocs.io",
        "Source": "https://github.com/purekafka/purekafka",
        "Changelog": "https://purekafka.readthedocs.io/en/stable/changes.html",
        "Issues": "https://github.com/purekafka/purekafka/issues",
    },
    # Said for editable installs: they then are a directory on the path, in which Spark finds pyspark_purekafka.
    package_dir={"": "."},
    packages=find_packages(include=["kafka", "kafka.*", "pyspark_purekafka"]),
    package_data={"kafka": ["py.typed"]},
    python_requires=">=3.10",
    install_requires=CODECS,
    extras_require=EXTRAS,
    entry_points={
        "console_scripts": ["purekafka = kafka.__main__:main"],
        "opentelemetry_instrumentor": ["purekafka = kafka.otel:Instrumentor"],
        "pytest11": ["purekafka = kafka.broker.pytest_plugin"],
    },
    classifiers=[
        "Development Status :: 3 - Alpha",
        "Framework :: AsyncIO",
        "Framework :: Pytest",
        "Intended Audience :: Developers",
        "Intended Audience :: Information Technology",
        "Intended Audience :: System Administrators",
        "Operating System :: OS Independent",
        "Programming Language :: Python :: 3",
        "Programming Language :: Python :: 3.10",
        "Programming Language :: Python :: 3.11",
        "Programming Language :: Python :: 3.12",
        "Programming Language :: Python :: 3.13",
        "Programming Language :: Python :: 3.14",
        "Programming Language :: Python :: Implementation :: CPython",
        "Topic :: Software Development :: Libraries :: Python Modules",
        "Topic :: Software Development :: Testing :: Mocking",
        "Topic :: System :: Distributed Computing",
        "Topic :: System :: Networking",
        "Typing :: Typed",
    ],
    keywords="kafka kafka-client kafka-python producer consumer admin asyncio streaming testing pytest mock pyspark",
)

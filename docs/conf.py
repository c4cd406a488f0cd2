"""Sphinx settings."""

from kafka.version import __version__

project = "purekafka"
author = "The purekafka developers"
copyright = "The purekafka developers, Apache License 2.0"
release = version = __version__

extensions = ["sphinx.ext.autodoc", "sphinx.ext.doctest"]
exclude_patterns = ["_build"]
html_theme = "alabaster"
html_theme_options = {"description": "Kafka for Python, without C", "fixed_sidebar": True}
autodoc_typehints = "description"
autodoc_member_order = "bysource"
nitpicky = False

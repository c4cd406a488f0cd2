"""The version of the distribution; setup.py reads it too."""

__version__ = "0.1.0"

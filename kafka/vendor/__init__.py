"""The historic place of modules that stood in for parts of newer Pythons: ``six``, ``selectors34``, ``socketpair``."""

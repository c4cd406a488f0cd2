"""Files that a doctest run of the documentation does not collect."""

# Programs, which do something when they are imported (test/embedded runs them), and extensions of Sphinx, which is
# not installed wherever the tests run.
collect_ignore = ["examples", "_ext"]

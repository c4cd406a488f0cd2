"""What is collected when examples in the documentation are run as doctests."""

# Programs, which do something when they are imported (test/embedded runs them), and extensions of Sphinx, which is
# not installed wherever the tests run.
collect_ignore = ["examples", "_ext"]

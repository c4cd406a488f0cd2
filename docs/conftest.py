"""What is collected when examples in the documentation are run as doctests."""

# Programs, which do something when they are imported; test/embedded runs them.
collect_ignore = ["examples"]

"""The exactly-once sink: its tasks, its commits on the driver, the markers of its progress."""

"""What the tests of kafka.spark share, whatever broker they run against."""

"""Where programs for aiokafka import assignors from."""

"""``purekafka exporter``: lag, offsets, groups, topics and brokers for Prometheus."""

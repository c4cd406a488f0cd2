"""Record batches in all formats of Kafka: reading, building, converting."""

"""Tests against Apache Kafka itself, and the small library that runs any of its releases as processes."""

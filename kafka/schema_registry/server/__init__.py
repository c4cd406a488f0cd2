"""A schema registry for tests and demonstrations: `kafka.schema_registry.SchemaRegistryServer`."""

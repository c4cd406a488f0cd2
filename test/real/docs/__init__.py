"""Code blocks of the documentation that need Apache Kafka, Java or pip."""

"""The resources that have a configuration, at aiokafka's place."""

from __future__ import annotations

from kafka.admin.config_resource import ConfigResource, ConfigResourceType

__all__ = ["ConfigResource", "ConfigResourceType"]

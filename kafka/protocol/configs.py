"""Configuration of topics, brokers and other resources.

Written by tools/generate_protocol.py from Kafka's message specs; do not edit.
"""

from __future__ import annotations

from kafka.protocol.api import Request, Response
from kafka.protocol.fields import Array, field
from kafka.protocol.struct import Struct
from kafka.protocol.types import Boolean, Int8, Int16, Int32, String


class DescribeConfigsRequest(Request["DescribeConfigsResponse"], api_key=32, versions="0-4", flexible="4+"):
    """Lists the configuration of resources."""

    class DescribeConfigsResource(Struct):
        resource_type: int = field(Int8, "0+")
        resource_name: str = field(String, "0+")
        configuration_keys: list[str] | None = field(Array(String), "0+", nullable="0+")

    resources: list[DescribeConfigsResource] = field(Array(DescribeConfigsResource), "0+")
    include_synonyms: bool = field(Boolean, "1+")
    include_documentation: bool = field(Boolean, "3+")


class DescribeConfigsResponse(Response, api_key=32, versions="0-4", flexible="4+"):
    class DescribeConfigsSynonym(Struct):
        name: str = field(String, "1+")
        value: str | None = field(String, "1+", nullable="1+")
        source: int = field(Int8, "1+")

    class DescribeConfigsResourceResult(Struct):
        name: str = field(String, "0+")
        value: str | None = field(String, "0+", nullable="0+")
        read_only: bool = field(Boolean, "0+")
        is_default: bool = field(Boolean, "0")
        config_source: int = field(Int8, "1+", default=-1, ignorable=True)
        is_sensitive: bool = field(Boolean, "0+")
        synonyms: list[DescribeConfigsResponse.DescribeConfigsSynonym] = field(
            Array("DescribeConfigsSynonym"), "1+", ignorable=True
        )
        config_type: int = field(Int8, "3+", ignorable=True)
        documentation: str | None = field(String, "3+", nullable="3+", ignorable=True)

    class DescribeConfigsResult(Struct):
        error_code: int = field(Int16, "0+")
        error_message: str | None = field(String, "0+", nullable="0+")
        resource_type: int = field(Int8, "0+")
        resource_name: str = field(String, "0+")
        configs: list[DescribeConfigsResponse.DescribeConfigsResourceResult] = field(
            Array("DescribeConfigsResourceResult"), "0+"
        )

    throttle_time_ms: int = field(Int32, "0+")
    results: list[DescribeConfigsResult] = field(Array(DescribeConfigsResult), "0+")


class AlterConfigsRequest(Request["AlterConfigsResponse"], api_key=33, versions="0-2", flexible="2+"):
    """Replaces the whole configuration of resources."""

    class AlterableConfig(Struct):
        name: str = field(String, "0+")
        value: str | None = field(String, "0+", nullable="0+")

    class AlterConfigsResource(Struct):
        resource_type: int = field(Int8, "0+")
        resource_name: str = field(String, "0+")
        configs: list[AlterConfigsRequest.AlterableConfig] = field(Array("AlterableConfig"), "0+")

    resources: list[AlterConfigsResource] = field(Array(AlterConfigsResource), "0+")
    validate_only: bool = field(Boolean, "0+")


class AlterConfigsResponse(Response, api_key=33, versions="0-2", flexible="2+"):
    class AlterConfigsResourceResponse(Struct):
        error_code: int = field(Int16, "0+")
        error_message: str | None = field(String, "0+", nullable="0+")
        resource_type: int = field(Int8, "0+")
        resource_name: str = field(String, "0+")

    throttle_time_ms: int = field(Int32, "0+")
    responses: list[AlterConfigsResourceResponse] = field(Array(AlterConfigsResourceResponse), "0+")


class IncrementalAlterConfigsRequest(
    Request["IncrementalAlterConfigsResponse"], api_key=44, versions="0-1", flexible="1+"
):
    """Changes single entries of the configuration of resources."""

    class AlterableConfig(Struct):
        name: str = field(String, "0+")
        config_operation: int = field(Int8, "0+")
        value: str | None = field(String, "0+", nullable="0+")

    class AlterConfigsResource(Struct):
        resource_type: int = field(Int8, "0+")
        resource_name: str = field(String, "0+")
        configs: list[IncrementalAlterConfigsRequest.AlterableConfig] = field(Array("AlterableConfig"), "0+")

    resources: list[AlterConfigsResource] = field(Array(AlterConfigsResource), "0+")
    validate_only: bool = field(Boolean, "0+")


class IncrementalAlterConfigsResponse(Response, api_key=44, versions="0-1", flexible="1+"):
    class AlterConfigsResourceResponse(Struct):
        error_code: int = field(Int16, "0+")
        error_message: str | None = field(String, "0+", nullable="0+")
        resource_type: int = field(Int8, "0+")
        resource_name: str = field(String, "0+")

    throttle_time_ms: int = field(Int32, "0+")
    responses: list[AlterConfigsResourceResponse] = field(Array(AlterConfigsResourceResponse), "0+")


class ListConfigResourcesRequest(Request["ListConfigResourcesResponse"], api_key=74, versions="0-1", flexible="0+"):
    """Lists resources that have a configuration."""

    resource_types: list[int] = field(Array(Int8), "1+")


class ListConfigResourcesResponse(Response, api_key=74, versions="0-1", flexible="0+"):
    class ConfigResource(Struct):
        resource_name: str = field(String, "0+")
        resource_type: int = field(Int8, "1+", default=16, ignorable=True)

    throttle_time_ms: int = field(Int32, "0+")
    error_code: int = field(Int16, "0+")
    config_resources: list[ConfigResource] = field(Array(ConfigResource), "0+")

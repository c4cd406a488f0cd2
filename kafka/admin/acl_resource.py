"""The historic home of the classes of access control lists."""

from kafka.acl import ACLOperation, ACLPermissionType, ACLResourcePatternType, ResourceType
from kafka.admin.acls import ACL, ACLFilter, ResourcePattern, ResourcePatternFilter, valid_acl_operations

__all__ = [
    "ACL",
    "ACLFilter",
    "ACLOperation",
    "ACLPermissionType",
    "ACLResourcePatternType",
    "ResourcePattern",
    "ResourcePatternFilter",
    "ResourceType",
    "valid_acl_operations",
]

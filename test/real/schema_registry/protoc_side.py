"""protoc: prints the descriptor of a .proto file in base64; run with the Python of its package."""

import base64
import os
import sys
import tempfile

import grpc_tools
from google.protobuf import descriptor_pb2
from grpc_tools import protoc

with tempfile.TemporaryDirectory() as directory:
    out = os.path.join(directory, "out")
    include = os.path.join(os.path.dirname(grpc_tools.__file__), "_proto")
    where = os.path.dirname(sys.argv[1])
    assert protoc.main(["", f"-I{where}", f"-I{include}", f"--descriptor_set_out={out}", sys.argv[1]]) == 0
    with open(out, "rb") as file:
        found = descriptor_pb2.FileDescriptorSet.FromString(file.read()).file[0]
print(base64.b64encode(found.SerializeToString()).decode())

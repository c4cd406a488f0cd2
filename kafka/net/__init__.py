"""What a connection is made of: name resolution, proxies, TLS, SASL, retry delays.

Each module decides and transforms; sockets are opened and read in `kafka.conn` only. The in-memory
network of `kafka.net.memory` lets all of it run in tests without a socket or a clock.
"""

"""Connections to brokers: name resolution, proxies, TLS, SASL, and the requests over them."""

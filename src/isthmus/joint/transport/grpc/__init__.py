"""The default transport between machines: gRPC over mutual TLS 1.3 with pinned certificates."""

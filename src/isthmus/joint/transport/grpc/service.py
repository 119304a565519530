"""The one method of the gRPC service, and the settings of both ends."""

from __future__ import annotations

from isthmus.joint.transport.grpc.pieces import LONGEST_PIECE

SERVER_NAME = "localhost"
"""A name in every coordinator's certificate. The certificate is pinned, so any name will do."""

SERVICE = "isthmus.Carrier"
METHOD = "Connect"
PATH = f"/{SERVICE}/{METHOD}"
STUDY, VERSION = "isthmus-study", "isthmus-carrier"
"""Keys of the metadata with which a site opens its stream."""

CARRIER = "1"
"""Version of what is sent over a stream."""

ADMITTED = ((VERSION, CARRIER),)
"""The metadata with which the coordinator lets a site in."""

KEEPALIVE = 10.0
"""Seconds without traffic after which an end asks whether the other one is still there."""

DEAD = 10.0
"""Seconds without an answer to that, after which a connection counts as broken."""

COMMON_OPTIONS = (
    ("grpc.max_send_message_length", LONGEST_PIECE),
    ("grpc.max_receive_message_length", LONGEST_PIECE),
    ("grpc.keepalive_time_ms", int(1000 * KEEPALIVE)),
    ("grpc.keepalive_timeout_ms", int(1000 * DEAD)),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_pings_without_data", 0),
)
SERVER_OPTIONS = (
    *COMMON_OPTIONS,
    ("grpc.so_reuseport", 0),  # a second coordinator must not take over half of the connections
    ("grpc.http2.min_ping_interval_without_data_ms", int(500 * KEEPALIVE)),
    ("grpc.max_concurrent_streams", 4),
)
CHANNEL_OPTIONS = (
    *COMMON_OPTIONS,
    ("grpc.ssl_target_name_override", SERVER_NAME),
    ("grpc.enable_retries", 0),
    ("grpc.use_local_subchannel_pool", 1),  # a new channel is a new connection
)

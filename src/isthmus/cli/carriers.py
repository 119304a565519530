"""The option that chooses what carries the messages of a federation."""

from __future__ import annotations

import argparse

LOOPBACK = "127.0.0.1"


def add_carrier(parser: argparse.ArgumentParser) -> None:
    """Add the option that chooses the carrier."""
    parser.add_argument(
        "--carrier",
        default="grpc",
        metavar="NAME",
        help="what carries messages, the same at all parties: grpc (default), or flower, "
        "which needs the package isthmus-flower",
    )

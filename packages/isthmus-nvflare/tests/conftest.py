"""Fixtures that tests of federations share."""

from tests.processes.conftest import folder

__all__ = ["folder"]

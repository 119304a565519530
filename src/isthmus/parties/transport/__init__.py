"""Carriers of messages between parties."""

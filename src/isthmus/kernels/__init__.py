"""Typed Python side of the compiled core; nothing else imports the compiled module."""

"""Isthmus studies as apps of Flower: a ServerApp for the SuperLink, a ClientApp for SuperNodes."""

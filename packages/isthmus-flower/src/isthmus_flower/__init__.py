"""Flower as the carrier of an Isthmus federation: ``--carrier flower``."""

from isthmus_flower.carrier import FlowerCarrier

__all__ = ["FlowerCarrier"]

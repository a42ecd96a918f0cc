"""Learnable-time ODE-based collaborative filtering."""

__version__ = "0.1.0"

"""Faults, tried for real: kills, full disks, two at once, damage, numbers and hostile input.

The tests here are quick and seeded. `make faults` runs the same trials many times (__main__.py).
"""

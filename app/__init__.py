"""Sluice: admission decisions for GPU-served language models, by policy, on live readings, provable afterwards."""

__version__ = "0.1.0"

"""Measurements against other systems; run one as `python -m benchmarks.conformance`."""

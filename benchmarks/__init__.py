"""Side-by-side benchmarks: this library and its peers on the same work, in turn, in fresh processes.

``python -m benchmarks records`` runs one sub-target; docs/benchmarks.rst says how to read what comes out.
"""

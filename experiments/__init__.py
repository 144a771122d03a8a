"""The papers' tables and figures, made from finished runs.

`python -m experiments.tables` writes the tables in `docs/results/`,
`experiments.figures` draws learning curves, and `experiments.add_runs` adds
your own runs to the published ones. A run is read from its files:
`config.json` has its command and arguments, `result.json` its metrics.
"""

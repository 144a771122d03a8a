"""Abstract rules and the ESBN: Sinha et al., 2020, and Webb et al., 2021."""

"""SCOFF: Goyal et al., 2020, object files and schemata."""

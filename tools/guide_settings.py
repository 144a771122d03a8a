"""What a guide needs where it is run, in tests and for the site."""

import pathlib

ROOT = pathlib.Path(__file__).parents[1]
# Guides that need another start of Python than the others.
OTHER_START = {
    "several_devices": {
        "KERAS_BACKEND": "jax",
        "PYTHONPATH": str(ROOT),
        "XLA_FLAGS": "--xla_force_host_platform_device_count=2",
    }
}

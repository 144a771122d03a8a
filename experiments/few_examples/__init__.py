"""Every mechanism on few examples: Altabaa et al., 2024, and others."""

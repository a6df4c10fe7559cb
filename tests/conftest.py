"""Hypothesis runs the same examples each time: a failure seen once is seen again."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "suite", deadline=None, derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("suite")

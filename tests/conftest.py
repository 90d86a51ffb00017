"""Settings of all tests."""

from hypothesis import HealthCheck, settings

# Tests never assert times: a busy machine is not a bug.
settings.register_profile("blendctl", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("blendctl")

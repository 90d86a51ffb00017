"""Settings of all tests."""

import signal

from hypothesis import HealthCheck, settings

# Tests never assert times: a busy machine is not a bug.
settings.register_profile("blendctl", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("blendctl")

# A job in the background of a shell ignores Ctrl-C, and so would every process that a test starts to interrupt it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

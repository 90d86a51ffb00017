"""Certificates: bounds on the cost and return of episodes that hold without assumptions on their distribution."""

from blendctl.certificates.betting import episodes_needed, log_wealth, mean_bound
from blendctl.certificates.certificate import Certificate, certify, read_certificate
from blendctl.certificates.claim import Bounds, Claim, boldest_proven, bounds
from blendctl.certificates.monitor import CertificateMonitor, as_monitor

__all__ = [
    "Claim",
    "Bounds",
    "Certificate",
    "certify",
    "bounds",
    "read_certificate",
    "boldest_proven",
    "mean_bound",
    "episodes_needed",
    "log_wealth",
    "CertificateMonitor",
    "as_monitor",
]

"""The option `--certificate`: compare a run with the certificate of its driver."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from blendctl.cli.output import echo
from blendctl.errors import InputError

if TYPE_CHECKING:
    from blendctl.certificates import CertificateMonitor


def open_monitor(path: Path | None, *, world: str, controllers: Sequence[str]) -> CertificateMonitor | None:
    """Return the monitor of a certificate; raise InputError for other controllers, warn about another world."""
    if path is None:
        return None
    from blendctl.certificates import CertificateMonitor, read_certificate
    from blendctl.experiments.units import file_digests

    certificate = read_certificate(path)
    certified = certificate.about.get("digests", {}).get("controllers")
    if not isinstance(certified, dict) or list(certified.values()) != file_digests("", controllers):
        raise InputError(f"{path} is a certificate of other controllers than {', '.join(controllers)}")
    if certificate.about.get("world") != world:
        echo(f"warning: {path} was made in {certificate.about.get('world')}, this is {world}", err=True)
    if not certificate.passed:
        echo(f"warning: the claim of {path} was not proven; its bounds are compared anyway", err=True)
    return CertificateMonitor(certificate)


def status_words(monitor: CertificateMonitor) -> str:
    """Describe whether the episodes agree with the certificate."""
    if monitor.alarms:
        return "the certificate no longer holds: " + "; ".join(monitor.alarms)
    rate = f"false-alarm rate {monitor.false_alarm:.0%}"
    return f"no disagreement with the certificate in {monitor.episodes} episodes ({rate})"

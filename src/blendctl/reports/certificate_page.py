"""Write a certificate as one HTML page that prints on one sheet and loads nothing."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np

from blendctl.certificates import Certificate
from blendctl.certificates.certificate import NOT_COVERED
from blendctl.reports.sheet import section_html, sheet_html, table_html, verdict_html

BINS = 40
WIDTH, HEIGHT, FOOT = 640, 110, 18


def certificate_html(certificate: Certificate) -> str:
    """Return the page of a certificate; all names and texts are escaped."""
    about = certificate.about
    title = f"{about.get('driver', 'driver')} in {about.get('world', 'an environment')}"
    parts = [
        f'<p class="kind">blendctl certificate · {escape(str(about.get("date", "")))}</p><h1>{escape(title)}</h1>',
        verdict_html(verdict_words(certificate), passed=certificate.passed),
        section_html("What the episodes show", _bounds_table(certificate)),
        section_html("Cost of the episodes", _histogram(certificate)),
        section_html("Settings of the dial, from safest to boldest", _dial_table(about.get("dial"))),
        section_html("What this does not cover", "<ul>" + "".join(f"<li>{one}</li>" for one in NOT_COVERED) + "</ul>"),
        section_html("What was certified, with SHA-256 digests", _facts(about)),
        '<p class="signature"><span>Date</span><span>Name</span><span>Signature</span></p>',
    ]
    return sheet_html(title, parts, kind="certificate")


def verdict_words(certificate: Certificate) -> str:
    """Return whether the claim is proven, and how."""
    claim, shown = certificate.claim, certificate.bounds
    how = "sequential test, " if certificate.sequential else ""
    dial = certificate.about.get("dial")
    chosen = f" at prefer {dial['chosen']:g}" if dial and dial["chosen"] is not None else ""
    state = "Proven" if certificate.passed else "Not proven"
    return (
        f"{state}{chosen} with {100 * claim.confidence:.4g}% confidence ({how}{shown.episodes} episodes): {claim.words}"
    )


def _bounds_table(certificate: Certificate) -> str:
    claim, shown = certificate.claim, certificate.bounds
    rows = [
        ("Mean cost of an episode", f"{shown.cost_mean:.2f}", f"at most {shown.cost_mean_upper:.2f}"),
        (f"Episodes that cost more than {claim.budget:g}", f"{shown.share_over:.1%}",
         f"at most {shown.share_over_upper:.1%}"),
    ]  # fmt: skip
    if shown.return_mean_lower is not None:
        rows.append(
            ("Mean return of an episode", f"{shown.return_mean:.2f}", f"at least {shown.return_mean_lower:.2f}")
        )
    else:
        rows.append(("Mean return of an episode", f"{shown.return_mean:.2f}", "no range declared"))
    head = ("", f"in {shown.episodes} episodes", f"{100 * claim.confidence:.4g}% bound")
    return f"{table_html(head, rows)}<p>{escape(_assumptions(certificate))}</p>"


def _assumptions(certificate: Certificate) -> str:
    claim, shown = certificate.claim, certificate.bounds
    words = f"The episodes are independent. An episode costs {claim.cost_ceiling:g} at most. "
    if claim.return_range is not None:
        low, high = claim.return_range
        words += f"Returns outside {low:g} to {high:g} count as the nearest of these; {shown.returns_outside} did. "
    if certificate.settings > 1:
        return words + (
            f"The bounds of all {certificate.settings} settings hold together; the claim is tested setting by setting, "
            "which needs no correction."
        )
    return words + "Each single bound holds with this confidence, for any distribution of costs and returns."


def _histogram(certificate: Certificate) -> str:
    """Draw a histogram of the cost of the episodes, with the budget as a line."""
    costs, budget = np.array(certificate.costs), certificate.claim.budget
    top = max(float(costs.max()), 1.25 * budget)
    counts, _ = np.histogram(costs, bins=BINS, range=(0.0, top))
    step, plot = WIDTH / BINS, HEIGHT - FOOT
    bars = "".join(
        f'<rect x="{i * step + 0.5:.1f}" y="{plot - plot * n / counts.max():.1f}" width="{step - 1:.1f}" '
        f'height="{plot * n / counts.max():.1f}" fill="#0072b2"/>'
        for i, n in enumerate(counts.tolist())
        if n
    )
    at = WIDTH * budget / top
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="Histogram of the cost of the episodes">{bars}'
        f'<line x1="{at:.1f}" y1="0" x2="{at:.1f}" y2="{plot}" stroke="#c8451b" stroke-width="1.5"/>'
        f'<line x1="0" y1="{plot}" x2="{WIDTH}" y2="{plot}" stroke="#8b939d"/>'
        f'<g font-size="11" fill="#5b6470"><text x="0" y="{HEIGHT - 4}">0</text>'
        f'<text x="{at:.1f}" y="{HEIGHT - 4}" text-anchor="middle">budget {budget:g}</text>'
        f'<text x="{WIDTH}" y="{HEIGHT - 4}" text-anchor="end">cost {top:.0f}</text></g></svg>'
    )


def _dial_table(dial: Any) -> str:
    if not dial:
        return ""
    rows = (
        (
            f"{row['prefer']:g}", str(row["episodes"]), f"{row['cost_mean']:.2f}", f"{row['cost_mean_upper']:.2f}",
            f"{row['return_mean']:.2f}", f"{row['p_value']:.2g}", "yes" if row["passed"] else "no",
        )
        for row in dial["settings"]
    )  # fmt: skip
    return table_html(("prefer", "episodes", "cost", "at most", "return", "p", "passed"), rows)


def _facts(about: Any) -> str:
    """List digests, versions and the command, one row each."""
    digests = about.get("digests", {})
    rows = {f"controller {name}": value for name, value in digests.get("controllers", {}).items()}
    rows |= {name: value for name, value in digests.items() if isinstance(value, str)}
    rows["settings"] = ", ".join(f"{name} {value}" for name, value in about.get("arguments", {}).items() if value)
    rows["seeds"] = f"from {about['seed']}" if "seed" in about else ""
    rows["versions"] = ", ".join(f"{name} {value}" for name, value in about.get("versions", {}).items())
    rows["command"] = about.get("command", "")
    return table_html(None, [(name, str(value)) for name, value in rows.items() if value], kind="facts")

"""A monitor seldom raises a false alarm, notices a change, also late, and reads only certificates that are intact."""

import json

import numpy as np
import pytest
from episode_costs import CEILING, RETURNS, draw_episodes
from scipy import stats

from blendctl.certificates import CertificateMonitor, Claim, as_monitor, certify, read_certificate
from blendctl.errors import FileFormatError, InputError

CLAIM = Claim(budget=25.0, cost_ceiling=CEILING, return_range=RETURNS)


@pytest.fixture(scope="module")
def certificate():
    return certify(*draw_episodes(np.random.default_rng(0), "light", 500), CLAIM)


def episodes_to_alarm(monitor, returns, costs):
    for number, (gain, cost) in enumerate(zip(returns, costs, strict=True), start=1):
        if monitor.add(gain, cost):
            return number
    return None


def exact_certificate(returns, costs):
    """Return a certificate whose bounds are the true means of what these episodes are drawn from."""
    made = certify(returns, costs, CLAIM)
    shown = made.bounds
    object.__setattr__(shown, "cost_mean_upper", costs.mean())
    object.__setattr__(shown, "share_over_upper", (costs > CLAIM.budget).mean())
    object.__setattr__(shown, "return_mean_lower", returns.mean())
    return made


@pytest.mark.parametrize("runs", [30, pytest.param(1000, marks=pytest.mark.slow)])
def test_false_alarms_are_as_rare_as_stated_even_at_the_edge_of_the_bounds(runs):
    pool = draw_episodes(np.random.default_rng(1), "light", 20_000)
    certificate = exact_certificate(*pool)
    rng = np.random.default_rng(2)
    alarms = 0
    for _ in range(runs):
        rows = rng.integers(20_000, size=100)
        monitor = CertificateMonitor(certificate, false_alarm=0.1)
        alarms += episodes_to_alarm(monitor, pool[0][rows], pool[1][rows]) is not None
    print(f"{alarms / runs:.1%} false alarms")
    assert alarms <= stats.binom.ppf(0.999, runs, 0.1)


def test_episodes_like_the_certified_ones_raise_no_alarm(certificate):
    monitor = CertificateMonitor(certificate)
    assert episodes_to_alarm(monitor, *draw_episodes(np.random.default_rng(3), "light", 1000)) is None
    assert monitor.status()["alarms"] == []
    assert monitor.status()["episodes"] == 1000


@pytest.mark.parametrize("good", [0, 500])
def test_a_change_is_noticed_soon_also_after_a_long_good_time(certificate, good):
    rng = np.random.default_rng(4)
    monitor = CertificateMonitor(certificate)
    assert episodes_to_alarm(monitor, *draw_episodes(rng, "light", good)) is None
    returns, costs = draw_episodes(rng, "light", 200)
    number = episodes_to_alarm(monitor, returns, 5 * costs + 20)
    assert number is not None
    assert number <= (20 if good == 0 else 60)
    assert "certified" in monitor.alarms[0]


def test_lower_returns_are_noticed(certificate):
    monitor = CertificateMonitor(certificate)
    returns, costs = draw_episodes(np.random.default_rng(5), "light", 300)
    assert episodes_to_alarm(monitor, returns - 15.0, costs) is not None
    assert "mean return is below" in monitor.alarms[0]


def test_an_alarm_is_raised_once_and_stays(certificate):
    monitor = CertificateMonitor(certificate)
    raised = [alarm for _ in range(40) for alarm in monitor.add(25.0, 400.0)]
    assert len(raised) == 2  # mean cost and share
    assert monitor.alarms == raised
    assert monitor.status()["evidence"]["cost"] >= monitor.status()["alarm_at"]


def test_steps_add_up_to_episodes(certificate):
    one, other = CertificateMonitor(certificate), CertificateMonitor(certificate)
    for _ in range(5):
        one.observe(2.0, None)
        one.observe(None, 8.0)
    assert one.end_episode() == other.add(10.0, 40.0)
    assert one.status() == other.status()


def test_a_certificate_survives_its_file(certificate, tmp_path):
    path = tmp_path / "certificate.json"
    certificate.write(path)
    again = read_certificate(path)
    assert again.bounds == certificate.bounds
    assert again.costs == certificate.costs
    assert as_monitor(path).certificate.bounds == certificate.bounds
    assert as_monitor(None) is None


@pytest.mark.parametrize(
    "change",
    [
        {"cost_mean_upper": 10.0}, {"share_over_upper": 0.0}, {"return_mean_lower": 30.0}, {"episodes": 900},
        {"costs": []}, {"costs": ["a"]}, {"costs": None}, {"format": "other"}, {"version": 9}, {"budget": "25"},
        {"return_range": [1]}, {"settings": 0}, {"returns": [1e400]},
    ],
)  # fmt: skip
def test_a_changed_certificate_is_refused(certificate, change, tmp_path):
    path = tmp_path / "certificate.json"
    path.write_text(json.dumps(certificate.to_dict() | change))
    with pytest.raises(FileFormatError):
        read_certificate(path)


def test_a_foreign_or_missing_file_is_refused(tmp_path):
    (tmp_path / "list.json").write_text("[1]")
    (tmp_path / "text.json").write_text("no")
    for name in ("list.json", "text.json", "missing.json"):
        with pytest.raises(FileFormatError):
            read_certificate(tmp_path / name)


def test_wrong_arguments_are_refused(certificate):
    with pytest.raises(InputError, match="false_alarm"):
        CertificateMonitor(certificate, false_alarm=2.0)
    with pytest.raises(InputError, match="certificate must be"):
        as_monitor(3)
    with pytest.raises(InputError, match="cost >= 0"):
        CertificateMonitor(certificate).add(1.0, -1.0)

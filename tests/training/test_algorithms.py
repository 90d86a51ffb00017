"""Each algorithm on worlds whose best policy is known, and torch against the torch-free networks."""

import numpy as np
import pytest
import torch
from slider import LENGTH, Slider

from blendctl.errors import InputError
from blendctl.training import ALGORITHMS, SAFE_ALGORITHMS, TrainConfig, Trainer
from blendctl.training.policy import Policy
from blendctl.training.trust_region import conjugate_gradient, line_search

LIMIT = 5.0


def trainer(algo, *, updates, **options):
    small = {
        "algo": algo,
        "worlds": 16,
        "rollout": 40,
        "steps": updates * 640,
        "hidden": [32],
        "minibatch": 160,
        "policy_lr": 3e-3,
        "discount": 0.5,
        "target_kl": 0.02,
        "cost_limit": LIMIT,
        "multiplier_p": 0.5,
        "multiplier_i": 0.1,
        "threads": 1,
    }
    config = TrainConfig.from_dict(small | options)
    return Trainer(config, worlds=Slider(config.worlds), encoding=Slider.encoding, episode_length=LENGTH)


@pytest.mark.parametrize("algo", [a for a in ALGORITHMS if a not in SAFE_ALGORITHMS])
def test_return_alone_goes_to_its_best(algo):
    run = trainer(algo, updates=30)
    last = list(run.records())[-1]
    means = run.policy.actor(torch.tensor([[1.0, 0.0, 0.0], [-1.0, 0.0, 0.0]])).detach().numpy()
    assert (means[:, 0] > 0.9).all()
    assert means[:, 1] == pytest.approx([0.3, -0.3], abs=0.1)
    assert last.episode_cost > 0.85 * LENGTH


@pytest.mark.parametrize(("algo", "margin_rate"), [*((algo, 0.0) for algo in SAFE_ALGORITHMS), ("cpo", 0.05)])
def test_a_cost_limit_is_met_and_the_rest_is_still_best(algo, margin_rate):
    run = trainer(algo, updates=40, margin_rate=margin_rate)
    records = list(run.records())
    means = run.policy.actor(torch.tensor([[1.0, 0.0, 0.0], [-1.0, 0.0, 0.0]])).detach().numpy()
    assert means[:, 1] == pytest.approx([0.3, -0.3], abs=0.1)
    assert np.mean([r.rollout_cost for r in records[-8:]]) == pytest.approx(LIMIT, abs=0.5)
    # Return is worth 2 per unit of cost here (a0 = 2 cost - 1): the multiplier finds that price.
    if algo != "cpo":
        assert np.mean([r.metrics["multiplier"] for r in records[-8:]]) == pytest.approx(2.0, abs=0.4)


def test_cpo_recovers_from_a_policy_that_is_far_too_costly():
    run = trainer("cpo", updates=25, cost_limit=2.0)
    with torch.no_grad():
        run.policy.actor[-1].bias[0] = 1.0  # start at the costly end
    records = list(run.records())
    assert records[0].rollout_cost > 15.0
    assert records[0].metrics["case_recovery"] == 1.0
    assert records[-1].rollout_cost < 4.0


def test_cpo_tightens_its_limit_by_what_lasts_and_not_while_it_can_do_no_more():
    run = trainer("cpo", updates=25, cost_limit=2.0, margin_rate=0.5)
    with torch.no_grad():
        run.policy.actor[-1].bias[0] = 1.0  # start at the costly end
    margin, recovering = 0.0, 0.0
    grown = held = 0
    for record in run.records():
        over = record.rollout_cost - 2.0
        if over > 0.0 and recovering:
            assert record.metrics["margin"] == margin
            held += 1
        else:
            assert record.metrics["margin"] == pytest.approx(max(margin + 0.5 * over, 0.0))
            grown += over > 0.0
        margin, recovering = record.metrics["margin"], record.metrics["case_recovery"]
    assert grown
    assert held


@pytest.mark.parametrize("algo", ["trpo", "cpo"])
def test_a_trust_region_step_keeps_its_divergence(algo):
    for record in trainer(algo, updates=6, target_kl=0.005).records():
        assert 0.0 <= record.metrics["kl"] <= 1.5 * 0.005 + 1e-6


def test_conjugate_gradient_solves_a_random_system():
    root = torch.from_numpy(np.random.default_rng(0).normal(size=(20, 20)))
    matrix = root @ root.T + torch.eye(20, dtype=root.dtype)
    target = torch.arange(20, dtype=root.dtype)
    solution = conjugate_gradient(lambda v: matrix @ v, target, steps=60)
    assert (matrix @ solution).numpy() == pytest.approx(target.numpy(), abs=1e-6)


def test_a_line_search_that_finds_nothing_leaves_the_policy_alone():
    policy, config = policy_of(), TrainConfig(backtracks=3, backtrack=0.5)
    before = [p.detach().clone() for p in policy.parameters()]
    step = torch.ones(sum(p.numel() for p in policy.policy_parameters()))
    assert line_search(policy, step, accepts=lambda: False, config=config) == 0.0
    assert all(torch.equal(a, b) for a, b in zip(before, policy.parameters(), strict=True))
    tried = iter([False, True])
    assert line_search(policy, step, accepts=lambda: next(tried), config=config) == 0.5
    assert torch.allclose(policy.log_std, before[0] + 0.5)


def policy_of(hidden=(256, 256)):
    generator = torch.Generator().manual_seed(0)
    return Policy(Slider.encoding, 2, hidden=hidden, log_std=-0.5, generator=generator)


def test_the_torch_free_controller_equals_torch():
    policy = policy_of()
    with torch.no_grad():
        for parameter in policy.parameters():
            parameter.add_(0.1 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(1)))
    controller = policy.to_controller("same")
    rows = np.random.default_rng(0).normal(size=(100, 3))
    inputs = torch.from_numpy(policy.encoding(rows))
    with torch.no_grad():
        expected = policy.actor(inputs).numpy(), *(v.numpy() for v in policy.values(inputs))
    actual = controller.actor.batch(policy.encoding(rows)), controller.value(rows), controller.cost_value(rows)
    for one, other in zip(expected, actual, strict=True):
        assert other == pytest.approx(one, abs=1e-5)
    for i in range(5):
        assert controller.act(rows[i]) == pytest.approx(np.clip(expected[0][i], -1, 1), abs=1e-5)
        assert controller.value(rows[i]) == pytest.approx(expected[1][i], abs=1e-5)


def test_a_policy_takes_over_a_controllers_weights_if_the_shapes_agree():
    source = policy_of(hidden=(16,)).to_controller("source")
    generator = torch.Generator().manual_seed(9)
    other = Policy(Slider.encoding, 2, hidden=(16,), log_std=0.0, generator=generator)
    other.copy_from(source)
    rows = np.random.default_rng(0).normal(size=(4, 3))
    assert np.array_equal(other.to_controller("x").act(rows), source.act(rows))
    with pytest.raises(InputError, match="other layer sizes"):
        policy_of(hidden=(8,)).copy_from(source)

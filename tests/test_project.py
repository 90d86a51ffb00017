"""The files around the code agree with each other and with the code."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.utils import canonicalize_name

import blendctl

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
MAKEFILE = (ROOT / "Makefile").read_text()


def recipe(target):
    """Return the commands of a target of the Makefile."""
    block = re.search(rf"^{target}:.*\n((?:\t.*\n)+)", MAKEFILE, re.MULTILINE)
    return [line.strip().removeprefix("@") for line in block[1].splitlines()]


def test_the_citation_has_the_packages_version_and_address():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["version"] == blendctl.__version__
    assert citation["repository-code"] == PROJECT["project"]["urls"]["Homepage"]


def test_the_changelog_begins_with_the_packages_version():
    release, _, development = blendctl.__version__.partition(".dev")
    first = re.search(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)[1]
    assert first.startswith(f"{release} (")
    assert ("unreleased" in first) == bool(development)


def test_the_commit_hooks_are_the_checks_of_make_lint():
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())
    hooks = [hook for hook in config["repos"][0]["hooks"] if "stages" not in hook]
    commands = [hook["entry"].replace(".venv/bin", "$(BIN)").replace(" --force-exclude", "") for hook in hooks]
    checks = [line.replace(" --check", "").replace(" $(CHECKED)", "") for line in recipe("lint")[1:]]
    assert commands == checks


def test_a_long_commit_subject_is_refused():
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())
    (pattern,) = (hook["entry"] for hook in config["repos"][0]["hooks"] if hook["id"] == "subject-length")
    assert re.search(pattern, 73 * "x", re.MULTILINE | re.DOTALL)
    assert not re.search(pattern, 72 * "x" + "\n\n" + 100 * "x", re.MULTILINE | re.DOTALL)


def test_no_target_calls_sudo():
    assert "sudo" not in MAKEFILE


def test_hosted_ci_runs_the_tests_on_every_supported_python():
    workflow = yaml.safe_load((ROOT / ".github/workflows/test.yml").read_text())
    job = workflow["jobs"]["test"]
    classifiers = [re.search(r"3\.\d+$", line) for line in PROJECT["project"]["classifiers"] if " Python ::" in line]
    assert job["strategy"]["matrix"]["python"] == [match[0] for match in classifiers if match]
    assert {"run": "make test", "env": {"CI": "1"}} in job["steps"]


@pytest.mark.parametrize("extra", sorted(PROJECT["project"]["optional-dependencies"]))
def test_every_dependency_is_pinned_in_the_constraints(extra):
    pinned = {
        line.partition("==")[0].lower().replace("_", "-") for line in (ROOT / "constraints.txt").read_text().split()
    }
    wanted = PROJECT["project"]["dependencies"] + PROJECT["project"]["optional-dependencies"][extra]
    names = {re.match(r"[\w.-]+", line)[0].lower().replace("_", "-") for line in wanted}
    assert names <= pinned


@pytest.mark.parametrize(("lock", "extras"), [("requirements.lock", ()), ("requirements-dev.lock", ("dev", "docs"))])
def test_the_locks_hold_the_pinned_versions_with_digests(lock, extras):
    pins = {
        canonicalize_name(n): v
        for n, v in (line.split("==") for line in (ROOT / "constraints.txt").read_text().split())
    }
    entries = {}
    for line in (ROOT / lock).read_text().replace(" \\\n", " ").splitlines()[1:]:
        pin, *digests = line.split()
        name, version = pin.split("==")
        assert all(re.fullmatch("--hash=sha256:[0-9a-f]{64}", digest) for digest in digests)
        assert digests
        entries[name] = version
    assert entries.items() <= pins.items()
    wanted = list(PROJECT["project"]["dependencies"])
    for extra in extras:
        wanted += PROJECT["project"]["optional-dependencies"][extra]
    assert {canonicalize_name(re.match(r"[\w.-]+", line)[0]) for line in wanted} <= entries.keys()


ARCHITECTURE = (ROOT / "ARCHITECTURE.md").read_text()


def test_the_drawn_layers_are_the_import_contract():
    drawing = re.search(r"^## Layers$.*?^```$(.*?)^```$", ARCHITECTURE, re.MULTILINE | re.DOTALL)[1]
    drawn = [name for line in drawing.strip().splitlines() for name in re.split(r"\s{2,}", line)[0].split(", ")]
    layers = PROJECT["tool"]["importlinter"]["contracts"][0]["layers"]
    assert [f"blendctl.{name}" for name in drawn] == layers
    top = {path.stem for path in (ROOT / "src" / "blendctl").iterdir() if path.suffix == ".py" or path.is_dir()}
    assert {f"blendctl.{name}" for name in top if not name.startswith("_")} == set(layers)


def test_every_file_that_the_architecture_names_exists():
    named = set(re.findall(r"`((?:\w+/)+\w+\.py)`", ARCHITECTURE))
    assert len(named) > 10
    for name in named:
        assert (ROOT / name).is_file() or (ROOT / "src" / "blendctl" / name).is_file(), name

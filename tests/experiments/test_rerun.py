"""A rerun of somebody else's experiment runs none of their code."""

from blendctl.experiments.protocol import Settings
from blendctl.experiments.rerun import rerun_episodes


def test_a_rerun_imports_no_python_that_a_directory_names(tmp_path, monkeypatch):
    mark = tmp_path / "ran"
    (tmp_path / "evil.py").write_text(f"open({str(mark)!r}, 'w').close()\nraise ValueError\n")
    pair = [f"{tmp_path}/evil.py:drive"] * 2
    settings = Settings({"PointGoal1": ("pure-pursuit", "stop")}, data_points=1, episodes=1, steps=5)
    about = {"parts": {"PointGoal1": pair}, "identity": settings.identity()}
    options = {"world": "PointGoal1", "data_point": 0, "episodes": 1, "into": tmp_path / "again"}
    assert rerun_episodes(tmp_path, about, **options) is None
    assert not mark.exists()
    monkeypatch.setenv("BLENDCTL_TRUST_CODE", "1")
    assert rerun_episodes(tmp_path, about, **options) is None
    assert mark.exists()

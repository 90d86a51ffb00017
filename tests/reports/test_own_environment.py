"""The data of the page of an environment of the user: pictures, entries of the observation, the control period."""

import json
import zipfile

import numpy as np
import pyarrow.dataset
import pytest
from own_cart import blend_cart

from blendctl.cli import main
from blendctl.errors import FileFormatError, InputError
from blendctl.reports import build_report
from blendctl.reports.blend_page import BLEND_PAGE
from blendctl.reports.blend_run import plot_entries, read_blend_run
from blendctl.reports.run_dir import open_run_dir
from blendctl.reports.run_pictures import read_episode_pictures


def page_of(folder, *, entries=None, **options):
    read = read_blend_run(open_run_dir(folder), replays=10, **options)
    return BLEND_PAGE.data(read if entries is None else plot_entries(read, entries))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return blend_cart(tmp_path_factory.mktemp("cart"), "--counterfactual")


def test_pictures_of_every_episode_are_in_the_page(folder):
    replay = page_of(folder).section("replay")
    assert [episode.pictures.steps for episode in replay.episodes] == [list(range(0, 61, 5))] * 2
    assert replay.step_seconds == 0.1
    assert [episode.steps for episode in replay.episodes] == [60, 60]


def test_the_page_says_which_stretch_of_time_correct_choices_are_about(folder):
    summary = json.loads((folder / "summary.json").read_text())
    assert summary["judged"] == page_of(folder).section("table").judged == "the next 100 ms"


def test_the_page_lists_environment_options_and_seeds(folder):
    facts = dict(page_of(folder).section("provenance").facts)
    assert facts["environment"].endswith(":Cart, episodes of 60 steps, control period 100 ms")
    assert facts["seeds"] == "3 to 4"
    assert "noise 0.1" in facts["options"]


def test_pictures_are_thinned_to_the_size_that_is_allowed(folder):
    whole = page_of(folder).section("replay").episodes[0].pictures
    size = 2 * sum(map(len, whole.sources))
    for share, steps in ((0.5, list(range(0, 61, 10))), (0.35, list(range(0, 61, 15))), (0.0, None)):
        thinned = page_of(folder, megabytes=1.1 * share * size / 1e6).section("replay").episodes[0].pictures
        assert (thinned and thinned.steps) == steps


def test_damaged_pictures_are_left_out_and_named(folder, tmp_path):
    file = tmp_path / "episode-000000.zip"
    good = (folder / "frames" / file.name).read_bytes()
    for data in (b"", b"PK no longer", good[:-40]):
        file.write_bytes(data)
        with pytest.raises(FileFormatError, match=r"episode-000000\.zip is damaged"):
            read_episode_pictures(file)
    for name, content, level in (("../x.webp", b"", 0), ("000001.webp", b"<svg>", 0), ("000001.webp", bytes(10**6), 9)):
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED if level else zipfile.ZIP_STORED) as archive:
            archive.writestr(name, content)
        with pytest.raises(FileFormatError, match="damaged or not recorded pictures"):
            read_episode_pictures(file)
    kept = folder / "frames" / file.name
    kept.write_bytes(good[:-40])
    try:
        data = page_of(folder)
    finally:
        kept.write_bytes(good)
    assert "Unreadable files of the pictures were left out: episode-000000.zip." in data.headline.banner
    assert [episode.pictures is None for episode in data.section("replay").episodes] == [True, False]


def test_entries_that_vary_most_are_plotted_or_those_that_the_reader_names(folder):
    assert page_of(folder).section("replay").entries == ["observation[0]", "observation[1]"]  # the third is constant
    named = page_of(folder, entries=["1=speed, m/s", "2"]).section("replay")
    assert named.entries == ["speed, m/s", "observation[2]"]
    with pytest.raises(InputError, match='no entry "7"; allowed: 0, 1, 2'):
        build_report(folder, entries=["7"])
    track = pyarrow.dataset.dataset(folder / "track").to_table().to_pandas()
    assert np.isfinite(track["observation_1"]).all()
    assert len(track) == 2 * 61


def test_simulated_look_ahead_does_not_record_what_it_simulates(tmp_path):
    folder = blend_cart(tmp_path, "--lookahead", "simulated", "--hold", 5, "--no-alone")
    track = pyarrow.dataset.dataset(folder / "track").to_table()
    assert track["step"].to_pylist() == [*range(61)] * 2
    assert list(read_episode_pictures(folder / "frames" / "episode-000001.zip")) == list(range(0, 61, 5))


def test_an_environment_that_draws_nothing_says_so_on_its_page(tmp_path, capsys):
    folder = blend_cart(tmp_path / "a", "--no-alone", env="Blind", frames=None)
    assert not (folder / "frames").exists()
    replay = page_of(folder).section("replay")
    assert replay.no_picture.startswith('No pictures: the environment does not list "rgb_array"')
    assert replay.episodes[0].pictures is None
    capsys.readouterr()
    blend_cart(tmp_path / "b", env="Blind", code=1)
    assert "--frames: there are no pictures" in capsys.readouterr().err
    blend_cart(tmp_path / "c", "--no-alone", frames=0)
    assert not (tmp_path / "c" / "frames").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["PointGoal1", "--frames", "5", "--out", "OUT"], "a page draws the worlds of blendctl itself"),
        (["Pendulum-v1", "--controllers", "a", "b", "--frames", "5"], "name its directory: --out DIR"),
    ],
)
def test_pictures_that_nobody_would_see_are_refused(words, message, tmp_path, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["blend", *[str(tmp_path) if word == "OUT" else word for word in words]])
    assert stopped.value.code == 1
    assert message in capsys.readouterr().err


def test_the_command_takes_entries_and_a_size(folder, tmp_path, capsys):
    file = tmp_path / "page.html"
    with pytest.raises(SystemExit) as stopped:
        main(["report", str(folder), "-o", str(file), "--picture-mb", "0", "--entries", "1=speed", "0=place"])
    assert stopped.value.code == 0, capsys.readouterr().err
    data = json.loads(file.read_text().split('id="data">')[1].split("</script>")[0])
    replay = next(section["data"] for section in data["sections"] if section["name"] == "replay")
    assert replay["entries"] == ["speed", "place"]
    assert replay["episodes"][0]["pictures"] is None

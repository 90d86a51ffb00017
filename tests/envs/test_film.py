"""Films have the pictures that were put in, at the right speed, whole or not at all."""

import sys
from contextlib import suppress

import imageio_ffmpeg
import numpy as np
import pytest
from PIL import Image

from blendctl.envs import film as film_module
from blendctl.envs.film import open_film
from blendctl.errors import InputError, MissingExtraError, StateError

BLUE, RED = (0, 114, 178), (213, 94, 0)


def pictures(count, height=64, width=80):
    """A red square that moves over a blue ground."""
    for n in range(count):
        picture = np.full((height, width, 3), BLUE, np.uint8)
        picture[10:30, n : n + 20] = RED
        yield picture


def test_a_gif_has_every_picture_at_its_time(tmp_path):
    path = tmp_path / "new" / "film.gif"
    with open_film(path, fps=25) as film:
        for picture in pictures(40):
            film.add(picture)
    assert film.frames == 40
    with Image.open(path) as written:
        assert written.n_frames == 40
        assert written.info["duration"] == 40
        assert written.info["loop"] == 0
        for n, picture in enumerate(pictures(40)):
            written.seek(n)
            assert np.abs(np.asarray(written.convert("RGB")).astype(int) - picture).max() <= 6
    assert [p.name for p in path.parent.iterdir()] == ["film.gif"]


def test_a_gif_keeps_small_colours_on_a_shaded_ground(tmp_path):
    shades = np.linspace(0, 255, 200 * 200).reshape(200, 200, 1).astype(np.uint8)
    picture = np.repeat(shades, 3, axis=2)
    picture[100:106, 100:106] = RED
    path = tmp_path / "film.gif"
    with open_film(path, fps=10) as film:
        film.add(picture)
    with Image.open(path) as written:
        pixels = np.asarray(written.convert("RGB")).astype(int)
    assert np.abs(pixels[103, 103] - RED).max() < 20
    assert np.abs(pixels - picture).mean() < 3


def test_an_mp4_has_every_picture_also_of_odd_sizes(tmp_path):
    path = tmp_path / "film.mp4"
    with open_film(path, fps=20) as film:
        for picture in pictures(30, height=65, width=81):
            film.add(picture)
    frames, seconds = imageio_ffmpeg.count_frames_and_secs(str(path))
    assert (frames, seconds) == (30, pytest.approx(1.5, abs=0.05))
    reader = imageio_ffmpeg.read_frames(str(path))
    meta = next(reader)
    first = np.frombuffer(next(reader), np.uint8).reshape(*meta["size"][::-1], 3).astype(int)
    reader.close()
    assert meta["size"] == (80, 64)
    assert np.abs(first[50, 60] - BLUE).max() < 25
    assert np.abs(first[20, 10] - RED).max() < 25


@pytest.mark.parametrize("suffix", [".gif", ".mp4"])
def test_a_film_that_breaks_off_leaves_the_old_one(tmp_path, suffix):
    path = tmp_path / f"film{suffix}"
    path.write_bytes(b"old")
    with suppress(KeyboardInterrupt), open_film(path, fps=25) as film:
        film.add(next(pictures(1)))
        raise KeyboardInterrupt
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_without_ffmpeg_the_error_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    with pytest.raises(MissingExtraError, match=r'imageio-ffmpeg.*pip install "blendctl\[video\]"'):
        open_film(tmp_path / "film.mp4", fps=25)


def test_a_gif_does_not_eat_the_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(film_module, "GIF_FRAMES", 3)
    with open_film(tmp_path / "film.gif", fps=5) as film:
        for picture in pictures(3):
            film.add(picture)
        with pytest.raises(InputError, match="at most 3 pictures"):
            film.add(picture)


@pytest.mark.parametrize(
    ("name", "fps", "message"),
    [("film.avi", 25, "allowed: .gif, .mp4"), ("film", 25, "allowed"), ("film.gif", 0, "0 < fps")],
)
def test_bad_films_are_refused(tmp_path, name, fps, message):
    with pytest.raises(InputError, match=message):
        open_film(tmp_path / name, fps=fps)


def test_a_film_without_pictures_is_none(tmp_path):
    with pytest.raises(StateError, match="at least one"), open_film(tmp_path / "film.gif", fps=25):
        pass
    assert list(tmp_path.iterdir()) == []

"""The page of an environment of the user in headless Chromium: pictures, entries, the mixing line, whole names."""

import json

import pyarrow.dataset
import pytest
from own_cart import blend_cart

from blendctl.reports import build_report

LONG = "a_controller_whose_name_somebody_chose_with_great_care-2026-final-v12"
NAMES = (LONG, "slow")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = blend_cart(tmp_path_factory.mktemp("cart"), "--counterfactual", names=NAMES)
    (made / "report.html").write_text(build_report(made, entries=["1=speed", "0"]), encoding="utf-8")
    return made


def show(page, folder, step):
    page.open((folder / "report.html").as_uri())
    page.run(f"blendctl.seek({step})")
    page.settle()


def level(page):
    """Return the grey level in the middle of the picture."""
    return page.run(
        "(() => { const source = document.querySelector('#picture'); const copy = document.createElement('canvas');"
        "copy.width = source.width; copy.height = source.height;"
        "const context = copy.getContext('2d', { willReadFrequently: true }); context.drawImage(source, 0, 0);"
        "return context.getImageData(copy.width / 2, copy.height / 2, 1, 1).data[0]; })()"
    )


def text(page, selector):
    return page.run(f"document.querySelector({json.dumps(selector)}).textContent")


def test_the_picture_is_that_of_the_step(page, folder, screenshots):
    show(page, folder, 33)
    assert page.run("document.querySelector('#world').hidden && document.querySelector('#no-map').hidden")
    for step, shown in ((33, 30), (60, 60), (4, 0), (45, 45)):
        page.run(f"blendctl.seek({step})")
        page.wait(f"document.querySelector('#picture-step').textContent.startsWith('Picture of step {shown};')")
        assert level(page) == pytest.approx(4 * shown, abs=6)
    assert text(page, "#picture-step") == "Picture of step 45; there is one every 5 steps."
    assert text(page, "#clock") == "45 / 60 · 4.5 s"
    page.run("blendctl.select(1); blendctl.seek(20)")
    page.wait("document.querySelector('#picture-step').textContent.startsWith('Picture of step 20;')")
    page.screenshot(screenshots / "report-own-environment.png", whole=True)
    loaded = [address for address in page.requests() if not address.startswith("data:")]
    assert loaded == [(folder / "report.html").as_uri()]


def test_the_picture_has_the_colour_of_the_driver(page, folder):
    show(page, folder, 33)
    arm = page.run("blendctl.state().arm")
    colors = ["rgb(217, 134, 0)", "rgb(0, 114, 178)"]
    assert page.run("getComputedStyle(document.querySelector('#picture')).borderBottomColor") == colors[arm]


def test_entries_of_the_observation_equal_the_track_and_a_click_on_them_jumps(page, folder):
    show(page, folder, 0)
    track = pyarrow.dataset.dataset(folder / "track").to_table().to_pandas()
    for episode in (0, 1):
        rows = track[track["episode"] == episode]
        for at, column in enumerate(("observation_1", "observation_0")):
            shown = page.run(f"Array.from(blendctl.episodes[{episode}].entries[{at}])")
            assert shown == pytest.approx(rows[column].tolist(), rel=1e-3, abs=1e-6)
    left, top, width, height = page.box("#timeline")
    page.click(left + width * 0.8, top + height - 40)  # in a plot
    assert page.run("blendctl.state().step") > 30


def test_the_table_and_the_chart_have_the_mixing_line(page, folder):
    show(page, folder, 0)
    rows = page.run("[...document.querySelectorAll('#table tbody tr')].map((e) => e.textContent)")
    assert [row.startswith(name) for row, name in zip(rows, (*NAMES, "mixing", "blended"), strict=True)] == [True] * 4
    heads = page.run("[...document.querySelectorAll('#table th')].map((e) => e.textContent)")
    assert "the next 100 ms" in heads
    keys = page.run("[...document.querySelectorAll('#standing .keys span')].map((e) => e.textContent)")
    summary = json.loads((folder / "summary.json").read_text())
    assert keys[0].startswith(f"{LONG} alone: cost ")
    assert keys[-1] == "mixing line"
    assert any(key.startswith("blended: cost ") for key in keys)
    assert summary["alone"][LONG]["cost_mean"] > summary["alone"]["slow"]["cost_mean"]
    assert page.run("document.querySelectorAll('#standing polyline').length") == 1


@pytest.mark.parametrize("page", [{"width": 1280}, {"width": 390, "height": 844, "phone": True}], indirect=True)
def test_names_are_never_cut(page, folder):
    show(page, folder, 33)
    assert page.run("document.documentElement.scrollWidth <= innerWidth"), "the page scrolls sideways"
    cut = page.run(
        "[...document.querySelectorAll('.label, .name, .who b, .legend li, .keys span, small, #claims li, .note')]"
        ".filter((e) => e.offsetParent && (e.scrollWidth > e.clientWidth + 1 && e.clientWidth "
        "|| getComputedStyle(e).textOverflow === 'ellipsis')).map((e) => e.outerHTML)"
    )
    assert cut == []
    shown = page.run("[...document.querySelectorAll('.bar .label')].map((e) => e.textContent)")
    assert shown == [*NAMES] * 3
    # the lane of the long name has room for several lines of its label where labels are shown
    high = page.run("document.querySelector('#timeline').clientHeight")
    assert high > 2 * 20 + 21 + 2 * 49 + 19

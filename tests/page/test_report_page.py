"""The report in headless Chromium, opened from disk: it plays, scrubs and jumps, and its numbers equal the record."""

import json
import time

import pyarrow.dataset
import pyarrow.parquet
import pytest
from chromium import Page
from short_drive import TRAINED, blend_to, lookahead_of_trained

from blendctl.cli import main
from blendctl.reports import build_report

DESKTOP = {"width": 1280, "height": 900}
PHONE = {"width": 390, "height": 844, "phone": True}
LOOKS = {
    "desktop-light": DESKTOP,
    "desktop-dark": DESKTOP | {"dark": True},
    "phone-light": PHONE,
    "phone-dark": PHONE | {"dark": True},
}


@pytest.fixture(scope="module")
def record(run_folder):
    return pyarrow.dataset.dataset(run_folder / "record").to_table().to_pandas()


def open_report(page, folder):
    page.open((folder / "report.html").as_uri())
    page.settle()


def text(page, selector):
    return page.run(f"document.querySelector({json.dumps(selector)}).textContent")


def pixels(page, canvas, box, expression="[...data]"):
    """Read part of a canvas through a copy; the data are red, green, blue, alpha, red, ..."""
    return page.run(
        f"(() => {{ const source = document.querySelector('{canvas}'); const copy = document.createElement('canvas');"
        "copy.width = source.width; copy.height = source.height;"
        "const context = copy.getContext('2d', { willReadFrequently: true }); context.drawImage(source, 0, 0);"
        f"const data = context.getImageData(...{box}).data; return {expression}; }})()"
    )


def number(words):
    return float(words.replace("−", "-"))


def expected(record, episode, step):
    rows = record[record["episode"] == episode].iloc[:step]
    return rows["reward"].sum(), rows["cost"].sum(), rows.iloc[-1] if step else None


@pytest.mark.parametrize("page", LOOKS.values(), ids=LOOKS, indirect=True)
def test_numbers_equal_the_record_at_every_size(page, run_folder, record, screenshots, request):
    open_report(page, run_folder)
    assert page.run("blendctl.episodes.length") == 2
    for episode, step in ((0, 1), (0, 77), (1, 42), (1, 150)):
        page.run(f"blendctl.select({episode}); blendctl.seek({step})")
        page.settle()
        state = page.run("blendctl.state()")
        total, cost, row = expected(record, episode, step)
        assert (state["episode"], state["step"], state["arm"]) == (episode, step, row["arm"])
        assert state["return"] == pytest.approx(total, abs=1e-5)
        assert state["cost"] == cost
        assert text(page, ".who b") == row["name"]
        assert number(text(page, "#sum-return")) == pytest.approx(total, abs=0.006)
        assert number(text(page, "#sum-cost")) == pytest.approx(cost, rel=1e-2)
        assert text(page, "#sum-step") == str(step)
        if isinstance(row["reason"], str):  # the reason is recorded only at switches
            assert row["reason"].endswith(text(page, "#reason"))
        shown = page.run("[...document.querySelectorAll('.index:last-child .value')].map((e) => e.textContent)")
        assert [number(value) for value in shown] == pytest.approx([row["loss_bold"], row["loss_wary"]], rel=6e-3)
    look = request.node.callspec.id
    assert page.run("document.documentElement.dataset.theme") == look.split("-")[1]
    assert page.run("document.documentElement.scrollWidth <= innerWidth"), "the page scrolls sideways"
    page.screenshot(screenshots / f"report-{look}.png", whole=True)
    assert page.requests() == [(run_folder / "report.html").as_uri()]


def test_it_plays_to_the_end_and_pauses(page, run_folder):
    open_report(page, run_folder)
    page.click_on("#play")
    page.wait("blendctl.state().playing && blendctl.state().step > 2")
    assert page.run("document.querySelector('#play').getAttribute('aria-label')") == "Pause"
    page.click_on("#play")
    stopped = page.run("blendctl.state()")
    assert not stopped["playing"]
    time.sleep(0.1)
    assert page.run("blendctl.state().step") == stopped["step"]
    page.run(
        "const speed = document.querySelector('#speed'); speed.value = '16'; speed.dispatchEvent(new Event('change'))"
    )
    page.run("blendctl.play()")
    page.wait("!blendctl.state().playing")
    assert page.run("blendctl.state().step") == 150
    page.run("blendctl.play()")  # from the start again
    page.wait("blendctl.state().step < 150")


def test_keys_step_jump_and_change_the_episode(page, run_folder):
    open_report(page, run_folder)
    steps = []
    for key, shift in (
        ("ArrowRight", False),
        ("ArrowRight", True),
        ("ArrowLeft", False),
        ("End", False),
        ("Home", False),
    ):
        page.press(key, shift=shift)
        steps.append(page.run("blendctl.state().step"))
    assert steps == [1, 26, 25, 150, 0]
    page.press("]")
    assert page.run("blendctl.state().episode") == 1
    page.press("[")
    assert page.run("blendctl.state().episode") == 0
    page.press(" ")
    assert page.run("blendctl.state().playing")
    page.press(" ")
    assert not page.run("blendctl.state().playing")


def test_scrubbing_and_clicks_on_the_timeline_jump(page, run_folder, record):
    open_report(page, run_folder)
    left, top, width, height = page.box("#scrub")
    page.click(left + width / 2, top + height / 2)
    assert page.run("blendctl.state().step") == pytest.approx(75, abs=3)
    left, top, width, height = page.box("#timeline")
    lanes = left + 112  # where the labels end
    page.click(lanes + (left + width - lanes) * 0.4, top + 10)
    state = page.run("blendctl.state()")
    assert state["step"] == pytest.approx(60, abs=1)
    total, cost, row = expected(record, 0, state["step"])
    assert (state["return"], state["cost"]) == (pytest.approx(total, abs=1e-5), cost)
    # the lane of whoever drives is coloured where the click went, the other is not
    page.settle()
    at = f"112 + (document.querySelector('#timeline').clientWidth - 112) * {state['step'] - 0.5} / 150"
    shades = [pixels(page, "#timeline", f"[Math.round({at}) - 1, {arm * 20 + 3}, 1, 1]")[:3] for arm in (0, 1)]
    wash = [0xF1, 0xEF, 0xE9]
    assert shades[row["arm"]] != wash
    assert shades[1 - row["arm"]] == wash


def test_a_click_on_a_moment_jumps_there(page, run_folder, record):
    open_report(page, run_folder)
    page.click_on("#moments button")
    state = page.run("blendctl.state()")
    _, cost, row = expected(record, state["episode"], state["step"])
    assert row["cost"] > 0
    before = expected(record, state["episode"], state["step"] - 1)[1]
    assert state["cost"] == cost == before + row["cost"]


def test_the_map_shows_the_robot_in_the_colour_of_the_driver(page, run_folder, record):
    open_report(page, run_folder)
    page.run("blendctl.seek(60)")
    page.settle()
    colors = [[0xD9, 0x86, 0x00], [0x00, 0x72, 0xB2]]
    driver = expected(record, 0, 60)[2]["arm"]
    for color in colors[driver], [0, 158, 115]:  # the robot, the goal
        near = " && ".join(f"Math.abs(data[i + {k}] - {value}) < 6" for k, value in enumerate(color))
        count = f"data.reduce((n, _, i) => n + (i % 4 === 0 && {near} ? 1 : 0), 0)"
        assert pixels(page, "#world", "[0, 0, source.width, source.height]", count) > 100


def test_charts_show_values_at_the_pointer_and_by_keys(page, run_folder):
    open_report(page, run_folder)
    assert page.run("document.querySelectorAll('#charts .chart').length") == 6
    left, top, width, height = page.box("#charts .chart svg")
    page.move(left + width * 0.9, top + height / 2)
    tip = "[...document.querySelectorAll('.tip')].find((tip) => !tip.hidden).textContent"
    words = page.run(tip)
    summary = json.loads((run_folder / "summary.json").read_text())
    assert words.startswith("episode 2")
    assert f"blended {summary['returns'][1]:.3f}"[:-1] in words
    page.move(2, 2)
    assert page.run("[...document.querySelectorAll('.tip')].every((tip) => tip.hidden)")
    page.run("document.querySelectorAll('#charts .chart svg')[1].focus()")
    page.press("ArrowLeft")
    assert page.run(tip).startswith("episode 2")
    page.press("ArrowLeft")
    assert page.run(tip).startswith("episode 1")
    assert page.run("blendctl.state().step") == 0  # the replay ignores the key


def test_the_reader_can_switch_between_light_and_dark(page, run_folder):
    open_report(page, run_folder)
    paper = "getComputedStyle(document.body).backgroundColor"
    light = page.run(paper)
    page.click_on("#theme")
    assert page.run("document.documentElement.dataset.theme") == "dark"
    assert page.run(paper) != light


def test_everything_can_be_reached_and_has_a_name(page, run_folder):
    open_report(page, run_folder)
    nameless = page.run(
        "[...document.querySelectorAll('button, select, input, canvas, svg[tabindex], a')].filter((e) => "
        "!(e.getAttribute('aria-label') || e.textContent.trim() || (e.labels && e.labels.length)))"
        ".map((e) => e.outerHTML)"
    )
    assert nameless == []
    page.press("Tab")
    assert page.run("document.activeElement.className") == "skip"


@pytest.mark.parametrize("page", [DESKTOP | {"reduced_motion": True}], indirect=True)
def test_nothing_moves_by_itself(page, run_folder):
    open_report(page, run_folder)
    assert page.run("getComputedStyle(document.documentElement).scrollBehavior") == "auto"
    assert not page.run("blendctl.state().playing")


def test_names_with_html_are_shown_as_text(browser, tmp_path):
    wicked = ('<img src=x onerror="window.harm=1">', "</script><script>window.harm=2</script>")
    folder = blend_to(tmp_path, names=wicked, episodes=1, steps=30)
    (folder / "report.html").write_text(build_report(folder), encoding="utf-8")
    page = Page(browser)
    open_report(page, folder)
    page.run("blendctl.seek(20)")
    page.settle()
    assert page.run("window.harm === undefined")
    assert text(page, ".who b") in wicked
    assert page.run("document.querySelectorAll('img').length") == 0
    assert page.complaints() == []
    page.close()


def test_a_run_cut_short_has_a_banner_and_still_plays(page, run_folder, tmp_path, record, screenshots):
    cut = tmp_path / "cut"
    (cut / "record").mkdir(parents=True)
    (cut / "run.json").write_bytes((run_folder / "run.json").read_bytes())
    table = pyarrow.dataset.dataset(run_folder / "record").to_table().slice(0, 90)
    pyarrow.parquet.write_table(table, cut / "record" / "part-000001.parquet")
    (cut / "report.html").write_text(build_report(cut), encoding="utf-8")
    open_report(page, cut)
    assert "did not finish" in text(page, "#banner")
    page.run("blendctl.seek(1000)")
    page.settle()
    assert page.run("blendctl.state().step") == 90
    assert page.run("blendctl.state().return") == pytest.approx(expected(record, 0, 90)[0], abs=1e-5)
    assert not page.run("document.querySelector('#no-map').hidden")
    page.screenshot(screenshots / "report-cut-short.png", whole=True)


def test_foresight_shows_what_was_foreseen_and_came_in_the_episode_that_is_picked(page, tmp_path, screenshots):
    steps = lookahead_of_trained()[1] + 100
    folder = blend_to(tmp_path, "--cost-budget", 5, "--no-alone", controllers=TRAINED, steps=steps)
    (folder / "report.html").write_text(build_report(folder), encoding="utf-8")
    open_report(page, folder)
    rows = pyarrow.dataset.dataset(folder / "record").to_table().to_pandas()
    assert "cost more than the budget of 5" in text(page, "#claims")
    assert page.run("document.querySelectorAll('#foresight .chart').length") == 8
    for episode in (0, 1):
        page.run(
            f"{{ const pick = document.querySelector('#foresight-episode'); pick.value = '{episode}';"
            "pick.dispatchEvent(new Event('change')) }"
        )
        page.run("document.querySelector('#foresight-charts .chart svg').focus()")
        page.press("ArrowLeft")
        page.press("Home")
        tip = page.run("[...document.querySelectorAll('.tip')].find((tip) => !tip.hidden).textContent")
        first = rows[rows["episode"] == episode].iloc[0]
        assert tip.startswith("step 1predicted with bold ")
        shown = number(tip.split("predicted with bold ")[1].split("predicted")[0])
        assert shown == pytest.approx(first["foreseen_bold_reward"], rel=1e-3)
    page.run("blendctl.select(1); blendctl.seek(3)")
    page.settle()
    headings = page.run("[...document.querySelectorAll('.index h3')].map((e) => e.firstChild.textContent)")
    assert headings == ["return to go", "cost to go", "loss"]
    shown = page.run("document.querySelector('.index .value').firstChild.textContent")
    first = rows[rows["episode"] == 1].iloc[0]
    assert number(shown) == pytest.approx(first["estimate_bold_reward"] * first["unit_reward"], rel=6e-3)
    assert page.run("document.documentElement.scrollWidth <= innerWidth"), "the page scrolls sideways"
    page.screenshot(screenshots / "report-foresight.png", whole=True)


def test_the_page_of_an_experiment_plays_too(page, tmp_path, screenshots):
    words = ["reproduce", "--worlds", "PointGoal1", "--data-points", "2", "--episodes", "2", "--steps", "60"]
    with pytest.raises(SystemExit):
        main([*words, "--engine", "inline", "--out", str(tmp_path)])
    (tmp_path / "report.html").write_text(build_report(tmp_path), encoding="utf-8")
    open_report(page, tmp_path)
    assert page.run("blendctl.episodes.length") == 2
    rows = pyarrow.parquet.read_table(tmp_path / "episodes.parquet").to_pylist()
    last = [row for row in rows if row["role"] == "blended" and row["data_point"] == 1]
    page.run("blendctl.seek(60)")
    state = page.run("blendctl.state()")
    assert state["step"] == 60
    assert state["return"] == pytest.approx(last[0]["return"], rel=1e-4)
    assert "rerun of its first episodes" in text(page, "#replay-note")
    page.screenshot(screenshots / "report-experiment.png", whole=True)

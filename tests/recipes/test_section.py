"""A report section is added by its recipe: one function, one script, one entry in the list of a page."""

import pytest
from chromium import HOW, Browser, Page, find_chromium
from short_drive import blend_to

from recipes import RecipeCopy


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """The page of a short run, built with a copy of the package in which the recipe was followed."""
    folder = tmp_path_factory.mktemp("recipe")
    blend_to(folder / "run", "--no-alone", episodes=1, steps=40)
    copy = RecipeCopy(folder, "A new report section")
    assert set(copy.files) == {
        "src/blendctl/reports/stretches.py",
        "src/blendctl/reports/page/sections/stretches.js",
        "src/blendctl/reports/blend_page.py",
    }
    copy.run("-m", "blendctl", "report", folder / "run", "-o", folder / "page.html")
    return folder / "page.html"


def test_the_page_contains_the_data_and_the_script(report):
    page = report.read_text()
    assert '"name":"stretches","title":"Stretches","data":{"bold":' in page
    assert 'section("stretches"' in page


@pytest.mark.skipif(find_chromium() is None, reason=HOW)
def test_the_browser_shows_the_section_in_its_place(report, tmp_path):
    browser = Browser(tmp_path)
    page = Page(browser)
    page.open(report.as_uri())
    titles = page.run("[...document.querySelectorAll('main h2')].map((heading) => heading.textContent)")
    lines = page.run("[...document.querySelectorAll('#stretches li')].map((item) => item.textContent)")
    complaints = page.complaints()
    page.close()
    browser.close()
    assert titles[titles.index("Charts") + 1] == "Stretches"
    assert len(lines) == 2
    assert all(line.endswith(" stages") for line in lines)
    assert complaints == []

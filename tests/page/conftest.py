"""Fixtures for tests in a real browser: one Chromium, one short run with its report."""

import os
from pathlib import Path

import pytest
from chromium import HOW, Browser, Page, find_chromium
from short_drive import blend_to

from blendctl.reports import build_report

SCREENSHOTS = Path(__file__).parents[2] / "out" / "screenshots"


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    if find_chromium() is None:
        if os.environ.get("CI"):
            pytest.fail(HOW)
        pytest.skip(HOW)
    started = Browser(tmp_path_factory.mktemp("chromium"))
    yield started
    started.close()


@pytest.fixture
def page(browser, request):
    """A tab; the test fails if its console has errors. Options such as phone and dark are passed with `indirect`."""
    opened = Page(browser, **getattr(request, "param", {}))
    yield opened
    complaints = opened.complaints()
    opened.close()
    assert complaints == []


@pytest.fixture(scope="session")
def run_folder(tmp_path_factory):
    folder = blend_to(tmp_path_factory.mktemp("page"))
    (folder / "report.html").write_text(build_report(folder), encoding="utf-8")
    return folder


@pytest.fixture(scope="session")
def screenshots():
    return SCREENSHOTS

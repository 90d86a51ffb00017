"""The pages are up to date: pictures, commands and tables are generated, links resolve, the site builds."""

import importlib.util
import re
import subprocess
import sys
import xml.etree.ElementTree as xml
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [*ROOT.glob("*.md"), *DOCS.glob("*.md")]


def script(name):
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_of_commands_matches_the_commands():
    written = (DOCS / "commands.md").read_text(encoding="utf-8")
    assert written == script("commands").page(), "run: python docs/commands.py"


def test_the_tables_of_results_match_the_published_results_and_the_zoo():
    written = (ROOT / "README.md").read_text(encoding="utf-8")
    results = script("results")
    assert written == results.with_tables(written), "run: python docs/results.py"
    for page, directories in results.PAGES.items():
        written = page.read_text(encoding="utf-8")
        assert written == results.with_compared(written, directories), "run: python docs/results.py"


def test_the_table_of_the_gallery_matches_the_published_cards():
    gallery = script("gallery")
    written = (DOCS / "own-environment.md").read_text(encoding="utf-8")
    assert written == gallery.with_table(written), "run: python docs/gallery.py"
    for card in gallery.cards():
        assert card["episodes"] >= 60
        files = {word.rpartition(":")[0] for word in card["command"].split() if ".py:" in word}
        assert files
        assert all((ROOT / file).is_file() for file in files), card["command"]


def test_the_measured_figures_are_those_of_the_verification():
    written = (DOCS / "guarantees.md").read_text(encoding="utf-8")
    assert written == script("guarantees").with_table(written), "run: python docs/guarantees.py"


def test_pictures_match_their_script_and_are_small_and_readable():
    for name, draw in script("pictures").PICTURES.items():
        file = DOCS / "pictures" / f"{name}.svg"
        text = file.read_text(encoding="utf-8")
        assert text == draw().svg(), "run: python docs/pictures.py"
        assert len(text) < 8_000
        assert "prefers-color-scheme:dark" in text
        root = xml.fromstring(text)
        assert [node for node in root.iter() if node.tag.endswith("}text")], "text must stay text"
        assert root.find("{http://www.w3.org/2000/svg}title").text
        assert name in (DOCS / "concepts.md").read_text(encoding="utf-8")


def test_the_dial_is_drawn_from_the_cards_of_the_networks_that_ship():
    pictures = script("pictures")
    written = (DOCS / "pictures" / "dial.svg").read_text(encoding="utf-8")
    assert written == pictures.dial().svg(), "run: python docs/pictures.py"
    assert len(written) < 16_000
    for page in (ROOT / "README.md", DOCS / "lookahead.md"):
        assert "pictures/dial.svg" in page.read_text(encoding="utf-8")


def test_the_scatters_have_all_published_methods_with_their_scores():
    results, readme = script("results"), (ROOT / "README.md").read_text(encoding="utf-8")
    for world in results.PAIRS:
        text = (DOCS / "pictures" / f"compare-{world}.svg").read_text(encoding="utf-8")
        methods = results.scattered(world)["methods"]
        assert {"performant", "safe", "random-episode", "simplex", "paper", "lookahead, pair", "ceiling"} <= set(
            methods
        )
        for name, method in methods.items():
            assert f"{name}  {method['corner_score']:+.2f}" in text, "run: python docs/results.py"
        assert len(text) < 100_000
        assert f"docs/pictures/compare-{world}.svg" in readme


def test_the_film_can_be_rendered_and_is_small(tmp_path):
    script("film").film(tmp_path / "blend.gif", steps=20)
    assert (tmp_path / "blend.gif").read_bytes().startswith(b"GIF89a")
    assert (DOCS / "pictures" / "blend.gif").stat().st_size < 1_000_000


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_point_to_existing_files(page):
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if not re.match(r"https?:|#", target):
            assert (page.parent / target.partition("#")[0]).exists(), f"{page.name}: {target}"


def test_pages_are_in_the_navigation_of_the_site():
    contents = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    for page in DOCS.glob("*.md"):
        assert page.name in contents, page.name


def test_the_site_builds_without_warnings_and_loads_nothing_from_other_hosts(tmp_path):
    pytest.importorskip("mkdocs")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    for page in ("index", "concepts", "commands", "api", "architecture", "safety"):
        assert (tmp_path / f"{page}.html").stat().st_size > 3_000
    assert "Blender" in (tmp_path / "api.html").read_text(encoding="utf-8")
    for file in tmp_path.glob("*.html"):
        text = file.read_text(encoding="utf-8")
        assert not re.findall(r'<(?:script|link)[^>]+(?:src|href)="https?://[^"]+\.(?:js|css)', text), file.name

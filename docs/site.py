"""Add the pages of the repository's root and the colours of code to the site."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files
from pygments.formatters import HtmlFormatter

ROOT = Path(__file__).parents[1]
SHOWN = ("ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md")
PICTURE = "img { max-width: 100%; height: auto; }\n"


def on_files(files: Files, config: Any) -> Files:
    """Add the files, with links into docs/ made relative."""
    for name in SHOWN:
        text = (ROOT / name).read_text(encoding="utf-8").replace("](docs/", "](")
        for other in SHOWN:
            text = text.replace(f"]({other})", f"]({other.lower()})")
        files.append(File.generated(config, name.lower(), content=text))
    light = HtmlFormatter(style="default").get_style_defs(".highlight")
    dark = HtmlFormatter(style="github-dark").get_style_defs("[data-bs-theme=dark] .highlight")
    files.append(File.generated(config, "code.css", content=f"{light}\n{dark}\n{PICTURE}"))
    return files

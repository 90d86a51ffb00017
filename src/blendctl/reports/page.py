"""Define a page as an ordered list of sections, and collect its data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Generic, Protocol, TypeVar

from blendctl.reports.page_data import Headline, PageData, SectionData


class Run(Protocol):
    """What every page needs of a run; the functions of sections take a more specific one."""

    @property
    def names(self) -> list[str]:
        """Return the names of the controllers."""

    @property
    def objectives(self) -> list[str]:
        """Return the names of the objectives."""


R = TypeVar("R", bound=Run)


@dataclass(frozen=True)
class Section(Generic[R]):
    """A section: `data` collects what the script `page/sections/NAME.js` shows."""

    name: str
    title: str  # heading and link, "" for none
    data: Callable[[R], object]  # returns JSON data or dataclasses; None leaves the section out

    def script(self) -> str:
        """Return the text of the script, which calls `section(NAME, (host, data, page) => ...)`."""
        return resources.files("blendctl.reports").joinpath("page", "sections", f"{self.name}.js").read_text("utf-8")


@dataclass(frozen=True)
class Page(Generic[R]):
    """A kind of page."""

    kind: str
    headline: Callable[[R], Headline]
    sections: Sequence[Section[R]]  # from top to bottom

    def data(self, run: R) -> PageData:
        """Collect the data of the page of a run."""
        parts = [SectionData(part.name, part.title, part.data(run)) for part in self.sections]
        shown = [part for part in parts if part.data is not None]
        return PageData(self.kind, self.headline(run), run.names, run.objectives, shown)

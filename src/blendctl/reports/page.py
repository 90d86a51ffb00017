"""Define a page as an ordered list of sections, and collect its data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from blendctl.reports.page_data import Headline, PageData, PageKind, SectionData


class PageRun(Protocol):
    """The part of a run that every page needs; the functions of sections take a more specific one."""

    @property
    def names(self) -> list[str]:
        """Return the names of the controllers."""

    @property
    def objectives(self) -> list[str]:
        """Return the names of the objectives."""


R = TypeVar("R", bound=PageRun)


@dataclass(frozen=True)
class Section(Generic[R]):
    """A section: `data` collects what `page/sections/NAME.js` shows by `section(NAME, (host, data, page) => ...)`."""

    name: str
    title: str  # heading and link, "" for none
    data: Callable[[R], object]  # returns JSON data or dataclasses; None leaves the section out


@dataclass(frozen=True)
class Page(Generic[R]):
    """A kind of page."""

    kind: PageKind
    headline: Callable[[R], Headline]
    sections: Sequence[Section[R]]  # from top to bottom

    def data(self, run: R) -> PageData:
        """Collect the data of the page of a run."""
        parts = [SectionData(part.name, part.title, part.data(run)) for part in self.sections]
        shown = [part for part in parts if part.data is not None]
        return PageData(self.kind, self.headline(run), run.names, run.objectives, shown)

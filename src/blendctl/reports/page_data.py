"""Content of a page: the typed contract between Python and the scripts of the page.

`PageData` is written into the page as JSON; field names are the names that the scripts read. The parts below it are the
data of the sections that come with blendctl. A section of your own may use any JSON data.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

PageKind = Literal["blend", "reproduce", "compare", "live"]
Color = int | str  # number of an arm, or a colour variable of style.css: "blend", "ink", "faint", "cost", "c0" to "c7"
Interval = tuple[float | None, float | None, float | None]  # mean, and the ends of its 95% confidence interval


@dataclass(frozen=True)
class Headline:
    """The top of a page."""

    title: str  # the world
    verdict: str
    claims: list[str] = field(default_factory=list)
    banner: list[str] = field(default_factory=list)  # missing or damaged parts


@dataclass(frozen=True)
class SectionData:
    """One section: `name` selects its script and is the id of its element."""

    name: str
    title: str  # heading and link, "" for none
    data: Any


@dataclass(frozen=True)
class PageData:
    """A whole page."""

    kind: PageKind
    headline: Headline
    names: list[str]  # of the controllers, in the order of the arms
    objectives: list[str]
    sections: list[SectionData]  # from top to bottom

    def section(self, name: str) -> Any:
        """Return the data of a section, None if the page does not have it."""
        return next((section.data for section in self.sections if section.name == name), None)


@dataclass(frozen=True)
class TableRow:
    """A controller, or the blend, in the table of results."""

    name: str
    label: str  # small words under the name
    color: Color
    highlighted: bool
    returns: Interval
    costs: Interval
    share: list[float | None]  # (arms,) of the control steps
    switches: int | None = None
    correct: float | None = None
    loss: float | None = None
    bound: float | None = None
    over_budget: Interval | None = None  # share of episodes
    score: Interval | None = None  # corner score


@dataclass(frozen=True)
class Table:
    """The table of results."""

    rows: list[TableRow]
    note: str
    judged: str = ""  # time that correct, loss and bound cover: "the next 20 ms"


@dataclass(frozen=True)
class Series:
    """A line of a chart; None where a value is unknown."""

    name: str
    color: Color
    x: list[float]
    y: list[float | None]
    dashed: bool = False
    low: list[float | None] | None = None  # ends of a band around the line
    high: list[float | None] | None = None
    left: list[float | None] | None = None  # ends of an interval of x, in a scatter
    right: list[float | None] | None = None


@dataclass(frozen=True)
class Chart:
    """A chart: lines, lines with marked points, stacked areas, or a scatter of single points and lines."""

    title: str
    series: list[Series]
    x: str  # label of the horizontal axis
    kind: Literal["line", "dots", "stack", "scatter"] = "line"
    y: str = ""  # label of the vertical axis, "" if the title has it
    unit: str = ""
    low: float | None = None  # ends of the vertical axis, None to fit the data
    high: float | None = None
    log: bool = False
    note: str = ""


@dataclass(frozen=True)
class EpisodeCharts:
    """Charts of one episode."""

    number: int
    charts: list[Chart]


@dataclass(frozen=True)
class ForesightCharts:
    """Predicted and observed values: over the run, and over each of some episodes."""

    note: str
    charts: list[Chart]
    episodes: list[EpisodeCharts]


@dataclass(frozen=True)
class Pictures:
    """Pictures of an episode."""

    steps: list[int]  # control steps of the pictures, ascending
    sources: list[str]  # WebP as base64


@dataclass(frozen=True)
class Episode:
    """An episode of a replay, and the first of its rows in the packed columns."""

    number: int
    seed: int | None
    steps: int
    stages: int
    complete: bool
    stage_at: int
    step_at: int
    pose_at: int | None  # None without poses
    layout: list[list[float]]  # fixed objects: kind, x, y, rotation
    entry_at: int | None = None  # None without entries of the observation
    pictures: Pictures | None = None


@dataclass(frozen=True)
class Replay:
    """Episodes to play; the columns are those of `binary_columns.Packer`."""

    scenery: dict[str, Any] | None  # None if the world cannot be drawn
    episodes: list[Episode] = field(default_factory=list)
    columns: dict[str, list[Any]] = field(default_factory=dict)
    blob: str = ""
    note: str = ""
    entries: list[str] = field(default_factory=list)  # labels of the plotted entries: columns entry_0, entry_1, ...
    step_seconds: float | None = None  # control period, None if it is not known
    no_picture: str = ""  # why an episode has neither map nor pictures


@dataclass(frozen=True)
class Moment:
    """Consecutive steps with costs."""

    episode: int
    step: int
    until: int
    cost: float
    arm: int  # the arm that drove most of it, -1 for the safe action
    share: float  # of that arm


@dataclass(frozen=True)
class Figure:
    """A picture."""

    source: str  # data URL
    description: str


@dataclass(frozen=True)
class Card:
    """Facts about a controller."""

    name: str
    facts: list[tuple[str, str]]


@dataclass(frozen=True)
class Provenance:
    """How the run was made."""

    facts: list[tuple[str, str]]
    cards: list[Card] = field(default_factory=list)

"""Draw the figures of docs/concepts.md and the dial as SVG: `python docs/pictures.py` writes them to docs/pictures/.

The files are small, keep text as text, and are readable on light and dark backgrounds. blendctl computes the data;
those of the dial are from the cards of the look-ahead networks that ship.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from xml.sax.saxutils import escape

import numpy as np

from blendctl import BlendingBandit, pareto
from blendctl.controllers import find_lookahead, open_controller
from blendctl.controllers.zoo import LOOKAHEAD_SETS

FOLDER = Path(__file__).parent / "pictures"
NAMES = ["A", "B", "C", "D"]
LABELS = {
    "a": (10, 4, "start"),
    "b": (0, 20, "middle"),
    "d": (0, -10, "middle"),
}  # of a controller: right, below, above
BUDGET = 25  # cost per episode, the limit of Safety Gym
ARMS = np.array([[0.85, 0.30], [0.60, 0.75], [0.25, 0.90], [0.45, 0.45]])  # (arms, objectives)

STYLE = """
.paper{fill:#fff}.ink{fill:#24292f}.soft{fill:#57606a}.axis,.thin{stroke:#57606a;fill:none}
.thin{stroke-dasharray:4 4}.a{fill:#0072b2}.b{fill:#d55e00}.c{fill:#009e73}.d{fill:#8a929a}
.sa{stroke:#0072b2}.sb{stroke:#d55e00}.sc{stroke:#009e73}.sd{stroke:#8a929a}.wash{fill:#0072b2;opacity:.09}
text{font:14px system-ui,sans-serif}.small{font-size:12px}.bold{font-weight:600}
@media (prefers-color-scheme:dark){.paper{fill:#1c2128}.ink{fill:#e6edf3}.soft{fill:#9ea7b3}
.axis,.thin{stroke:#9ea7b3}.a{fill:#56b4e9}.b{fill:#ff9a4d}.c{fill:#35c99a}.d{fill:#768390}
.sa{stroke:#56b4e9}.sb{stroke:#ff9a4d}.sc{stroke:#35c99a}.sd{stroke:#768390}.wash{fill:#56b4e9;opacity:.13}}
"""


class Drawing:
    """SVG shapes in pixels, with a coordinate plane from 0 to 1 over a part of them."""

    def __init__(self, width: int, height: int, words: str) -> None:
        self.size, self.words = (width, height), words
        self.shapes = [f'<rect width="{width}" height="{height}" rx="8" class="paper"/>']
        self.box = (60.0, height - 50.0, width - 150.0, height - 90.0)

    def plane(self, left: float, bottom: float, width: float, height: float) -> None:
        """Place the coordinate plane over a rectangle."""
        self.box = (left, bottom, width, height)

    def at(self, x: float, y: float) -> tuple[float, float]:
        """Return the pixel of a point of the plane."""
        left, bottom, width, height = self.box
        return round(left + x * width, 1), round(bottom - y * height, 1)

    def axes(self, across: str, up: str) -> None:
        """Draw the two axes with labels."""
        (x0, y0), (x1, y1) = self.at(0, 0), self.at(1, 1)
        self.shapes.append(f'<path class="axis" d="M{x0} {y1}V{y0}H{x1}"/>')
        self.text(across, (x0 + x1) / 2, y0 + 30, kind="soft", anchor="middle")
        self.text(up, x0 - 16, (y0 + y1) / 2, kind="soft", anchor="middle", turned=True)

    def line(self, start: tuple[float, float], end: tuple[float, float], kind: str, *, width: float = 1) -> None:
        """Draw a line between two pixels."""
        (x0, y0), (x1, y1) = start, end
        self.shapes.append(f'<path class="{kind}" stroke-width="{width:g}" d="M{x0:g} {y0:g}L{x1:g} {y1:g}"/>')

    def dot(self, place: tuple[float, float], kind: str, *, radius: float = 7) -> None:
        """Draw a disc at a pixel."""
        self.shapes.append(f'<circle class="{kind}" cx="{place[0]:g}" cy="{place[1]:g}" r="{radius:g}"/>')

    def area(self, corners: list[tuple[float, float]], kind: str = "wash") -> None:
        """Fill a polygon of pixels."""
        path = "L".join(f"{x:g} {y:g}" for x, y in corners)
        self.shapes.append(f'<path class="{kind}" d="M{path}Z"/>')

    def text(
        self,
        words: str,
        x: float,
        y: float,
        *,
        kind: str = "ink",
        anchor: str = "start",
        turned: bool = False,
    ) -> None:
        """Write text at a pixel."""
        turn = f' transform="rotate(-90 {x:g} {y:g})"' if turned else ""
        place = f'x="{x:g}" y="{y:g}" text-anchor="{anchor}"{turn}'
        self.shapes.append(f'<text class="{kind}" {place}>{escape(words)}</text>')

    def svg(self) -> str:
        """Return the content of the file."""
        width, height = self.size
        head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" role="img">'
        title = f"<title>{escape(self.words)}</title>"
        return "\n".join([head, title, f"<style>{STYLE.strip()}</style>", *self.shapes, "</svg>", ""])


def dominance() -> Drawing:
    """Draw four arms; the dominated region is shaded."""
    drawing = Drawing(560, 380, "Pareto dominance: A, B and C form the front, B dominates D")
    drawing.axes("reward (more is better)", "-cost (more is better)")
    front = pareto.front(ARMS)
    steps = sorted(ARMS[front].tolist())
    corners, height = [drawing.at(0, 0), drawing.at(0, steps[0][1])], 0.0
    for i, (x, y) in enumerate(steps):
        height = steps[i + 1][1] if i + 1 < len(steps) else 0.0
        corners += [drawing.at(x, y), drawing.at(x, height)]
    drawing.area(corners)
    for name, arm, best in zip(NAMES, ARMS, front, strict=True):
        x, y = drawing.at(*arm)
        drawing.dot((x, y), "a" if best else "d")
        drawing.text(name, x + 12, y - 8, kind="ink bold")
    b, d = drawing.at(*ARMS[1]), drawing.at(*ARMS[3])
    drawing.line(d, b, "thin")
    drawing.text("B beats D in both", d[0] + 14, d[1] + 20, kind="soft small")
    drawing.text("the front:", 412, 40, kind="a bold")
    drawing.text("nothing beats these", 412, 58, kind="soft small")
    return drawing


def maximal_loss() -> Drawing:
    """Draw the loss of every arm in each objective; the larger one is its maximal loss."""
    drawing = Drawing(560, 300, "Maximal loss: the loss of an arm in its worst objective; B has the smallest")
    losses = ARMS.max(axis=0) - ARMS  # (arms, objectives)
    worst = pareto.maximal_loss(ARMS)
    drawing.text("loss against the best arm in each objective", 60, 30, kind="soft")
    for row, (name, loss, largest) in enumerate(zip(NAMES, losses, worst, strict=True)):
        y = 62 + 52 * row
        best = largest == worst.min()
        drawing.text(name, 34, y + 16, kind="ink bold")
        for k, (label, color) in enumerate((("reward", "a"), ("-cost", "b"))):
            length = round(float(loss[k]) * 440, 1)
            top = y + 19 * k - 4
            drawing.shapes.append(f'<rect class="{color}" x="60" y="{top}" width="{max(length, 2):g}" height="14"/>')
            text = f"{label} {loss[k]:.2f}" + (" = its maximal loss" if loss[k] == largest else "")
            kind = "ink small bold" if loss[k] == largest and best else "soft small"
            drawing.text(text, 60 + max(length, 2) + 8, top + 12, kind=kind)
    drawing.text("B has the smallest loss in its worst objective: the rule picks B.", 60, 284, kind="ink")
    return drawing


def optimism() -> Drawing:
    """Draw estimates and indices of two arms after few and after many stages of a real bandit."""
    drawing = Drawing(560, 340, "Optimism: the index is the estimate plus the uncertainty")
    means, stages = np.array([0.35, 0.6]), (4, 400)
    rng = np.random.default_rng(1)
    bandit = BlendingBandit(n_features=2, n_objectives=1, noise=0.15, theta_bound=0.8, seed=0)
    shown = {}
    for stage in range(1, max(stages) + 1):
        decision = bandit.decide(np.eye(2))
        bandit.update(np.eye(2)[decision.arm], [means[decision.arm] + 0.15 * rng.standard_normal()])
        if stage in stages:
            shown[stage] = bandit.decide(np.eye(2))
    top = 1.1 * max(float(decision.ucb.max()) for decision in shown.values())
    for part, (stage, decision) in enumerate(shown.items()):
        drawing.plane(60 + 240 * part, 270, 210, 220)
        drawing.axes(f"after {stage} stages", "reward" if part == 0 else "")
        for arm, (name, color) in enumerate((("slow", "a"), ("fast", "b"))):
            across = 0.3 + 0.4 * arm
            estimate, index = float(decision.estimate[arm, 0]), float(decision.ucb[arm, 0])
            place = drawing.at(across, estimate / top)
            tip = drawing.at(across, index / top)
            drawing.line(place, tip, f"s{color}", width=3)
            drawing.dot(place, color)
            drawing.line((tip[0] - 9, tip[1]), (tip[0] + 9, tip[1]), f"s{color}", width=3)
            drawing.text(name, place[0], drawing.at(0, 0)[1] - 8, anchor="middle", kind=f"{color} small bold")
            if part == 0 and arm == 1:
                drawing.text("index", tip[0] + 13, tip[1] + 5, kind="soft small")
                drawing.text("estimate", place[0] + 13, place[1] + 5, kind="soft small")
    drawing.text("Little data: high indices, both are tried.", 50, 328, kind="soft small")
    drawing.text("The better one is well estimated.", 335, 328, kind="soft small")
    return drawing


def mixing_line() -> Drawing:
    """Draw return against cost: two controllers, the mixing line, the corner and the ceiling."""
    drawing = Drawing(600, 400, "The mixing line between two controllers, the corner above it, and the ceiling between")
    drawing.plane(60, 340, 500, 280)
    drawing.axes("cost per episode (less is better)", "return per episode")
    safe, fast, corner = (0.2, 0.25), (0.85, 0.8), (0.2, 0.8)
    drawing.area([drawing.at(*place) for place in (safe, corner, fast)])
    drawing.line(drawing.at(*safe), drawing.at(*fast), "axis", width=2)
    for share in (1 / 3, 2 / 3):  # lines of equal score
        low = (safe[0], safe[1] + share * (corner[1] - safe[1]))
        high = (corner[0] + (1 - share) * (fast[0] - corner[0]), corner[1])
        drawing.line(drawing.at(*low), drawing.at(*high), "thin")
    for place, color, name, words in (
        (safe, "a", "safe alone", ""),
        (fast, "b", "performant alone", ""),
        (corner, "c", "the corner: score 1", "the return of one at the cost of the other"),
    ):
        x, y = drawing.at(*place)
        drawing.dot((x, y), color)
        above = -14 if color != "a" else 24
        left = x - (60 if color == "b" else 30)
        drawing.text(name, left, y + above - (16 if words else 0), kind=f"{color} bold")
        if words:
            drawing.text(words, x - 30, y + above, kind="soft small")
    x, y = drawing.at(0.54, 0.36)
    drawing.text("the mixing line: score 0", x, y, kind="ink")
    drawing.text("a random choice per episode reaches it,", x, y + 18, kind="soft small")
    drawing.text("no blending needed", x, y + 34, kind="soft small")
    x, y = drawing.at(0.30, 0.70)
    drawing.dot((x, y), "d", radius=6)
    drawing.text("the ceiling", x + 14, y, kind="ink")
    drawing.text("a method that looks ahead in the simulator", x + 14, y + 17, kind="soft small")
    return drawing


def dial() -> Drawing:
    """Draw return against cost along the dial, a panel per world whose look-ahead networks ship."""
    networks = {
        world: find_lookahead([open_controller(name, world=world) for name in names])
        for world, names in LOOKAHEAD_SETS.items()
    }
    cards = {world: network.card for world, network in networks.items() if network is not None}
    worlds = ", ".join(cards)
    drawing = Drawing(
        max(420, 60 + 290 * len(cards)), 400, f"Return against cost along the dial of the look-ahead blend: {worlds}"
    )
    for part, (world, card) in enumerate(cards.items()):
        drawing.plane(70 + 290 * part, 310, 220, 240)
        drawing.axes("cost per episode", "return per episode" if part == 0 else "")
        settings, alone = sorted(card["dial"], key=lambda point: point["weight"]), card.get("alone", [])
        rows = [*settings, *alone]
        widest = 1.1 * max(BUDGET, *(row["cost_mean"] for row in rows))
        returns = [row["return_mean"] for row in rows]
        low, high = min(returns), max(returns)
        room = 0.12 * (high - low)

        def place(row, widest=widest, low=low - room, high=high + room):
            return drawing.at(row["cost_mean"] / widest, (row["return_mean"] - low) / (high - low))

        across, bottom = drawing.at(BUDGET / widest, 0)
        drawing.line((across, bottom), drawing.at(BUDGET / widest, 1), "thin")
        drawing.text(f"{BUDGET}", across, bottom + 14, kind="soft small", anchor="middle")
        for value in (low, high):
            x, y = drawing.at(0, (value - low + room) / (high - low + 2 * room))
            drawing.text(f"{value:.1f}", x - 4, y + 4, kind="soft small", anchor="end")
        if alone:
            drawing.line(place(alone[0]), place(alone[-1]), "axis")
        for start, end in pairwise(settings):
            drawing.line(place(start), place(end), "sc", width=2)
        for setting in settings:
            drawing.dot(place(setting), "c", radius=4)
        for row, color in zip(alone, ("b", *["d"] * (len(alone) - 2), "a"), strict=True):
            x, y = place(row)
            drawing.dot((x, y), color, radius=6)
            dx, dy, anchor = LABELS["a" if row["cost_mean"] < 0.1 * widest else color]  # not across the axis
            drawing.text(row["name"].rpartition("/")[2], x + dx, y + dy, kind=f"{color} small bold", anchor=anchor)
        drawing.text(world, *drawing.at(0, 1.08), kind="ink bold")
    drawing.text("green: settings of the dial, on validation episodes", 60, 374, kind="c small")
    drawing.text(f"grey: a coin before each episode; dashed: a cost of {BUDGET}", 60, 391, kind="soft small")
    return drawing


PICTURES = {
    "dominance": dominance,
    "maximal-loss": maximal_loss,
    "optimism": optimism,
    "mixing-line": mixing_line,
}

RESULTS = {"dial": dial}  # of what ships: drawn again when the look-ahead networks change


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, draw in (PICTURES | RESULTS).items():
        path = FOLDER / f"{name}.svg"
        path.write_text(draw().svg(), encoding="utf-8")
        print(f"wrote {path}, {path.stat().st_size} bytes")

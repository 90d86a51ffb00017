"""`blendctl export`: write a saved blend as C99 or ONNX files that run without Python."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from blendctl.cli import completers
from blendctl.cli import shared_options as shared
from blendctl.cli.multi_option import MultiValueCommand
from blendctl.cli.output import echo
from blendctl.cli.world_argument import world_option
from blendctl.errors import InputError

if TYPE_CHECKING:
    from blendctl.blender import Blender


@click.command(cls=MultiValueCommand, epilog="Example: blendctl export out/blend --format c -o out/robot")
@click.argument("blend", type=click.Path(path_type=Path))
@click.option("--format", "kind", type=click.Choice(["c", "onnx"]), default="c", help="Files to write.")
@click.option("-o", "--out", type=click.Path(path_type=Path, file_okay=False), required=True, help="Output directory.")
@click.option("--float32", is_flag=True, help="Compute geometry in single precision, except for next-step predictions.")
@click.option("--stochastic", is_flag=True, help="Sample actions instead of using means.")
@click.option("--frozen", is_flag=True, help="Decide without learning: leave the update of the learner out.")
@click.option("--safe-action", multiple=True, type=float, help="Action when no controller is fit.  [zeros]")
@click.option("--replace", is_flag=True, help="Replace files in --out.")
@shared.seed_option()
@shared.controllers_option(
    "Controllers of BLEND, in its order, if it is a saved learner, or if they are Python code or remote.",
    metavar="NAME|FILE|ADDRESS...",
)
@click.option("--features", shell_complete=completers.features, help="Context of a saved learner.  [as in blend]")
@shared.number_option("--hold", "Control steps per decision of a saved learner.  [as in blend]")
@world_option(help="World that is driven, or FILE.py:TASK.  [that of BLEND]")
@shared.trust_code_option
def export(
    blend: Path,
    kind: str,
    out: Path,
    float32: bool,
    stochastic: bool,
    frozen: bool,
    safe_action: tuple[float, ...],
    replace: bool,
    seed: int,
    **options: Any,
) -> None:
    """Write BLEND as files for the machine that moves: blend.c and blend.h (C99) or blend.onnx, and contract.json.

    BLEND is a directory that `blend --out` wrote, or the file of a saved learner with --controllers. The files start
    where the saved blend stopped.
    """
    changes: dict[str, Any] = {"stochastic": False}
    if frozen:
        changes["frozen"] = True
    if safe_action:
        changes["safe_action"] = list(safe_action)
    blender, world = _open(blend, changes=changes, **options)
    with blender:
        files = blender.export(
            out, format="c" if kind == "c" else "onnx", float32=float32, stochastic=stochastic, replace=replace,
            world=world, seed=seed,
        )  # fmt: skip
    echo("wrote " + ", ".join(f"{file} ({file.stat().st_size / 1e6:.2f} MB)" for file in files))
    if kind == "c":
        limits = json.loads((out / "contract.json").read_text())["limits"]
        if float32 and limits["precision"] == "double":
            echo("geometry stays in double: next steps differ by less than single precision resolves")
        echo(f"compile with: cc -std=c99 -O3 -c {out / 'blend.c'}  (link with -lm)")


def _open(
    blend: Path,
    *,
    changes: dict[str, Any],
    controllers: tuple[str, ...],
    features: str | None,
    hold: int | None,
    world: str | None,
) -> tuple[Blender, str | None]:
    """Open a directory or a saved learner; return the blender and the world of blendctl that it drives, if any."""
    from blendctl.bandit.persistence import load_beside
    from blendctl.blender import Blender
    from blendctl.blender.blend_dir import BLEND_FILES, read_blend_dir
    from blendctl.controllers.resolve import open_controller

    folder = blend.parent if blend.name in BLEND_FILES else blend
    if (folder / "run.json").is_file():
        if features is not None or hold is not None:
            raise InputError(f"{folder} has its own features and hold; --features and --hold are for a saved learner")
        there = read_blend_dir(folder)
        return Blender.load(folder, controllers=controllers or None, **changes), _own_world(world or there.world)
    if blend.is_dir() or not blend.exists():
        raise InputError(f"{blend} is not the directory of a blend: expected what `blendctl blend --out` wrote")
    if not controllers:
        raise InputError(f"{blend} is a saved learner without its controllers; name them: --controllers NAME NAME")
    _, about = load_beside(blend)
    names = {"names": about["names"]} if len(about.get("names", ())) == len(controllers) else {}
    opened = [open_controller(spec, world=world) for spec in controllers]
    settings = names | {"objectives": about.get("objectives", ("reward", "-cost"))} | changes
    return Blender(opened, bandit=blend, features=features, hold=hold, **settings), _own_world(world)


def _own_world(name: str | None) -> str | None:
    """Return a world of blendctl, None for other environments and for Python code that only a file names."""
    from blendctl.envs.catalog import find_task

    try:
        return None if name is None else (find_task(name), name)[1]
    except InputError:
        return None

"""Write an export to a directory: all files or none of another export."""

from __future__ import annotations

import hashlib
from pathlib import Path

from blendctl.atomic import write_atomically
from blendctl.errors import InputError
from blendctl.export.contract import contract_bytes
from blendctl.export.spec import BlendSpec

FORMATS = {"c": ("blend.c", "blend.h", "contract.json"), "onnx": ("blend.onnx", "contract.json")}


def check_format(kind: str) -> str:
    """Return the format of an export; raise InputError for an unknown one."""
    if kind not in FORMATS:
        raise InputError(f"format must be one of: {', '.join(FORMATS)}; actually: {kind!r}")
    return kind


def check_exportable(spec: BlendSpec, *, kind: str) -> None:
    """Raise InputError with every part of a blend that cannot be exported."""
    if kind == "c":
        from blendctl.export.c_file import CBlend

        CBlend(spec, float32=False)
    else:
        from blendctl.export.onnx_graph import OnnxBlend

        OnnxBlend(spec)


def check_directory(directory: str | Path, *, replace: bool) -> Path:
    """Return the output directory; raise InputError if it holds files that must not be replaced."""
    folder = Path(directory)
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is not a directory")
    present = sorted(entry.name for entry in folder.iterdir()) if folder.is_dir() else []
    if present and not replace:
        shown = ", ".join(present[:5]) + (", ..." if len(present) > 5 else "")
        raise InputError(f"{folder} holds files ({shown}); use an empty directory, or --replace")
    return folder


def write_export(spec: BlendSpec, directory: str | Path, *, kind: str, float32: bool, replace: bool) -> list[Path]:
    """Write the files of an export and return their paths."""
    folder = check_directory(directory, replace=replace)
    contents = c_files(spec, float32=float32) if check_format(kind) == "c" else onnx_files(spec, float32=float32)
    for name in {name for names in FORMATS.values() for name in names} - set(contents):
        (folder / name).unlink(missing_ok=True)  # of an earlier export in another format
    for name, content in contents.items():
        write_atomically(folder / name, content)
    return [folder / name for name in contents]


def c_files(spec: BlendSpec, *, float32: bool) -> dict[str, bytes]:
    """Return the files of a C export by name."""
    from blendctl.export.c_file import CBlend

    blend = CBlend(spec, float32=float32)
    limits = {
        "precision": "single" if blend.float32 else "double",
        "state_bytes": blend.state_bytes,
        "stack_bytes": blend.stack_bytes,
        "weight_bytes": blend.constant_bytes,
        "multiply_adds": blend.multiply_adds,
    }
    contract = contract_bytes(spec, files="c", limits=limits, weights=blend.builder.digests)
    digest = hashlib.sha256(contract).hexdigest()
    return {
        "blend.c": blend.source(digest).encode(),
        "blend.h": blend.header().encode(),
        "contract.json": contract,
    }


def onnx_files(spec: BlendSpec, *, float32: bool) -> dict[str, bytes]:
    """Return the files of an ONNX export by name."""
    from blendctl.export.onnx_graph import OnnxBlend

    if float32:
        raise InputError("--float32 is for the format c; in the ONNX graph networks are in single precision anyway")
    blend = OnnxBlend(spec)
    limits = {"precision": "networks single, learner double"}
    contract = contract_bytes(spec, files="onnx", limits=limits, weights=blend.digests())
    about = {"contract": hashlib.sha256(contract).hexdigest()}
    return {"blend.onnx": blend.model(about), "contract.json": contract}

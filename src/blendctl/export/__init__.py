"""Export a blend: as C99 files or as an ONNX graph, with a contract and golden vectors."""

from blendctl.export.exportable import CSource, exportable
from blendctl.export.spec import BlendSpec, Golden
from blendctl.export.write import write_export

__all__ = ["exportable", "CSource", "BlendSpec", "Golden", "write_export"]

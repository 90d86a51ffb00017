"""Export a blend: as C99 files or as an ONNX graph, with a contract and golden vectors."""

from blendctl.export.exportable import CSource, exportable

__all__ = ["exportable", "CSource"]

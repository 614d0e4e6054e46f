# SPDX-License-Identifier: MIT OR Apache-2.0
"""A notebook, run as Jupyter runs it."""

from pathlib import Path

import nbformat
from daemon import AT_MOST_S
from nbclient import NotebookClient

EXAMPLE = Path(__file__).parents[2] / "examples/notebook.ipynb"


def executed(folder: Path, notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """With its outputs; its files go into this folder. A cell that fails is an error."""
    NotebookClient(notebook, timeout=AT_MOST_S, kernel_name="python3", resources={"metadata": {"path": str(folder)}}).execute()
    return notebook


def shown(cell: nbformat.NotebookNode, kind: str) -> list:
    """What a cell shows of this MIME type."""
    return [output.data[kind] for output in cell.outputs if kind in output.get("data", {})]

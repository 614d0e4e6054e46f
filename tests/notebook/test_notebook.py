# SPDX-License-Identifier: MIT OR Apache-2.0
"""The notebook of examples/ runs from its first cell to its last, and shows what it says."""

import base64
import tempfile
import unittest
import warnings
from pathlib import Path

import nbformat
import strobe
from executed import EXAMPLE, executed, shown
from nbclient.exceptions import CellExecutionError
from typed import PACKAGE, mypy_passes, pyright_passes

WIDGET = "application/vnd.jupyter.widget-view+json"


class Notebook(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.folder = Path(cls.enterClassContext(tempfile.TemporaryDirectory(prefix="strobe-notebook-")))
        notebook = executed(cls.folder, nbformat.read(EXAMPLE, as_version=4))
        cls.cells = [cell for cell in notebook.cells if cell.cell_type == "code"]

    def cell(self, words: str) -> nbformat.NotebookNode:
        (found,) = [cell for cell in self.cells if words in cell.source]
        return found

    def test_a_summary_shows_its_account_and_its_rows(self) -> None:
        html = "".join(shown(self.cell("strobe.record"), "text/html"))
        for part in ("scan-001.arrows", "rows 0 to 999", "<polyline"):
            self.assertTrue(part in html, part)

    def test_matplotlib_draws_the_arrays(self) -> None:
        (picture,) = shown(self.cell("plt.show"), "image/png")
        picture = base64.b64decode(picture)
        self.assertTrue(picture.startswith(b"\x89PNG"))
        self.assertGreater(len(picture), 5000)

    def test_hvplot_draws_a_table_that_came_by_arrow(self) -> None:
        html = "".join(shown(self.cell("hvplot"), "text/html"))
        for part in ("sim.sine", "Bokeh"):
            self.assertTrue(part in html, part)

    def test_a_live_view_is_a_widget(self) -> None:
        (view,) = shown(self.cell("run.live"), WIDGET)
        self.assertTrue(view["model_id"])

    def test_the_recording_beside_the_live_view_has_every_row(self) -> None:
        (path,) = self.folder.glob("live-*.h5")
        recording = strobe.open(path)
        with warnings.catch_warnings(action="ignore", category=strobe.Lost):
            rows = sum(len(block) for block in recording)
        self.assertEqual((rows, recording.account.rows, recording.account.lost), (6000, 6000, 0))

    def test_a_cell_that_fails_is_found(self) -> None:
        notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell('import strobe\nstrobe.open("none.h5")')])
        with self.assertRaisesRegex(CellExecutionError, "none.h5"):
            executed(self.folder, notebook)


class Types(unittest.TestCase):
    def test_pyright_and_mypy_find_no_error_in_the_live_view_and_the_notebook(self) -> None:
        folder = Path(self.enterContext(tempfile.TemporaryDirectory(prefix="strobe-notebook-")))
        cells = [cell.source for cell in nbformat.read(EXAMPLE, as_version=4).cells if cell.cell_type == "code"]
        body = "".join(f"    {line}\n" for line in "\n".join(cells).splitlines())
        # A cell may await, and ends with what it shows. hvplot adds to classes of others what it does.
        head = "# pyright: standard, reportUnusedExpression=false, reportAttributeAccessIssue=false\nasync def cells() -> None:\n"
        (folder / "notebook.py").write_text(head + body)
        pyright_passes(self, folder, of=[PACKAGE / "_live.py"])
        mypy_passes(self, folder, "--disable-error-code=attr-defined")


if __name__ == "__main__":
    unittest.main()

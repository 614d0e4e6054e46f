# SPDX-License-Identifier: MIT OR Apache-2.0
"""JupyterLab on a port of its own, and a browser that runs a notebook in it."""

import os
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import nbformat
from browser import Browser
from daemon import AT_MOST_S, wait_for
from nbformat import NotebookNode

#: A run with 8 channels, whose rows a live view draws.
CHANNELS = ["sim.counter", "sim.ramp", "sim.sine", "sim.noise", "clock.elapsed", "clock.late", "cpu.id", "clock.time"]
LIVE = f"""import strobe

run = strobe.run(event="timer:1kHz", read={CHANNELS!r}, engine="user")
run.live(seconds=3)
"""
#: A recording, which hvplot draws from Arrow.
RECORDED = """import holoviews

# Before hvplot, which else loads its program from the network.
holoviews.extension("bokeh", inline=True)
import hvplot.polars
import polars as pl
import strobe

summary = strobe.record(None, "rows.arrows", event="timer:1kHz", read=["sim.ramp"], rows=1000, engine="user")
pl.DataFrame(strobe.open("rows.arrows")).hvplot.line(x="row", y="sim.ramp", color="#2ca02c")
"""


def live() -> NotebookNode:
    """A live view in the first cell, the end of its run in the second, a recording in the third."""
    cells = [nbformat.v4.new_code_cell(source) for source in (LIVE, "run.stop()", RECORDED)]
    # Without a kernel, JupyterLab would ask for one.
    return nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": {"name": "python3", "display_name": "Python 3"}})


class Lab:
    """JupyterLab in a folder that has this notebook, and the page that shows it."""

    def __init__(self, notebook: NotebookNode) -> None:
        self.place = tempfile.TemporaryDirectory(prefix="strobe-lab-")
        folder = Path(self.place.name)
        nbformat.write(notebook, folder / "rows.ipynb")
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        # Nothing of the user's settings, and nothing that asks other machines.
        own = {f"JUPYTER_{name}_DIR": str(folder / ".jupyter" / name) for name in ("CONFIG", "DATA", "RUNTIME")}
        words = ["--no-browser", "--allow-root", "--ip=127.0.0.1", f"--port={self.port}", "--ServerApp.port_retries=0",
                 "--IdentityProvider.token=", "--ServerApp.password=", "--LabApp.news_url=None", "--LabApp.expose_app_in_browser=True",
                 "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate"]
        self.log = (folder / "log").open("w+")
        self.process = subprocess.Popen([sys.executable, "-m", "jupyterlab", *words], cwd=folder, env=os.environ | own,
                                        stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, start_new_session=True)
        wait_for(self.listens, "JupyterLab listens")
        self.browser = Browser(height=1000)

    def listens(self) -> bool:
        if self.process.poll() is not None:
            self.log.seek(0)
            raise AssertionError(f"JupyterLab has ended: {self.log.read()}")
        try:
            socket.create_connection(("127.0.0.1", self.port)).close()
            return True
        except OSError:
            return False

    def opened(self) -> None:
        """The notebook, with its kernel."""
        self.browser.open(f"http://127.0.0.1:{self.port}/lab/tree/rows.ipynb")
        self.browser.wait("window.jupyterapp?.shell?.currentWidget?.context?.sessionContext?.session?.kernel?.status === 'idle'",
                          what="the kernel is there")

    def run(self, cell: int) -> None:
        """Runs the cell at this place, without waiting for it."""
        self.browser.do("""
            const notebook = window.jupyterapp.shell.currentWidget.content;
            notebook.activeCellIndex = arguments[0];
            window.jupyterapp.commands.execute('notebook:run-cell');""", cell)

    def drawn(self) -> int:
        """Pictures of the live view so far."""
        return int(self.browser.do("return document.querySelector('canvas.strobe-live')?.dataset.drawn ?? 0"))

    def close(self) -> None:
        self.browser.close()
        # Its kernels are in its session.
        os.killpg(self.process.pid, signal.SIGTERM)
        self.process.wait(AT_MOST_S)
        self.log.close()
        self.place.cleanup()

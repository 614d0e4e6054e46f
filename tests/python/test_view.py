# SPDX-License-Identifier: MIT OR Apache-2.0
"""How accounts, summaries and runs look in a notebook: every figure is there, what is missing stands out, and nothing is loaded."""

import re
import tempfile
import unittest
import xml.etree.ElementTree as xml
from pathlib import Path

import strobe
from daemon import Daemon

READ = ["sim.counter", "sim.sine", "sim.noise"]
TAGS = {"div", "b", "table", "thead", "tbody", "tr", "th", "td", "svg", "text", "title", "line", "polyline", "rect"}
LOSSY = {"event": "timer:50kHz", "rows": 30_000, "ring": 16}


class View(unittest.TestCase):
    def setUp(self) -> None:
        place = tempfile.TemporaryDirectory(prefix="strobe-python-")
        self.addCleanup(place.cleanup)
        self.folder = Path(place.name)

    def record(self, name: str, **words) -> strobe.Summary:
        return strobe.record(None, self.folder / name, **{"event": "timer:1kHz", "read": READ, "rows": 300, "engine": "user", **words})

    def of(self, what: strobe.Run | strobe.Account) -> xml.Element:
        """Its HTML, which is XML too, and loads and runs nothing."""
        text = what._repr_html_()
        view = xml.fromstring(text)
        self.assertLessEqual({element.tag for element in view.iter()}, TAGS)
        named = {name for element in view.iter() for name in element.keys()}
        self.assertFalse({name for name in named if name.startswith("on") or name in ("href", "src")})
        self.assertNotIn("url(", text)
        return view

    def drawn(self, view: xml.Element, kind: str) -> int:
        return sum(element.get("class") == kind for element in view.iter())

    def words(self, view: xml.Element) -> str:
        return " ".join(view.itertext())

    def figures(self, view: xml.Element) -> list[str]:
        table = next(view.iter("table"))
        return [cell.text or "" for cell in table.iter("td")]

    def test_a_run_shows_its_account_and_a_trace_of_each_channel(self) -> None:
        with strobe.run(event="timer:1kHz", read=READ, rows=300, engine="user") as run:
            rows = sum(len(block) for block in run)
            view = self.of(run)
        account = run.account
        self.assertEqual(account.triggers, account.rows + account.missed + account.skipped)
        self.assertEqual((rows + account.lost, account.rows), (300, 300))
        self.assertEqual(self.figures(view), [str(figure) for figure in (account.triggers, 300, account.missed, account.skipped,
                                                                         0, 0, "complete")])
        self.assertIn("rows 0 to 299", self.words(view))
        for name in READ:
            self.assertIn(name, self.words(view))
        self.assertGreaterEqual(self.drawn(view, "trace"), 3)
        self.assertGreater(self.drawn(view, "bar"), 0)
        if account.whole:
            self.assertIn("Nothing is missing", self.words(view))
            self.assertEqual((self.drawn(view, "trace"), self.drawn(view, "gap")), (3, 0))

    def test_to_look_at_a_run_starts_nothing_and_takes_no_row(self) -> None:
        with strobe.run(event="soft", read=READ, rows=5, engine="user") as run:
            self.assertIn("No rows yet", self.words(self.of(run)))
            self.assertEqual(run.state, "ready")
            reader = run.read()
            run.trigger(3)
            self.assertEqual(self.figures(self.of(run))[:2], ["3", "3"])
            run.trigger(2)
            self.assertEqual([row for block in reader for row in block.rows.tolist()], list(range(5)))

    def test_a_view_is_as_large_however_long_the_run_is(self) -> None:
        with strobe.run(event="soft", read=READ, engine="user", ring=2**20) as run:
            run.start()
            for _ in range(10):
                run.trigger(30_000)
            # It waits for no row: there will be none.
            view = self.of(run)
        self.assertIn("rows 200000 to 299999", self.words(view))
        self.assertLess(len(xml.tostring(view)), 200_000)

    def test_a_summary_shows_its_files_and_their_rows(self) -> None:
        view = self.of(self.record("scan.arrows"))
        self.assertIn(str(self.folder / "scan.arrows"), self.words(view))
        self.assertIn("rows 0 to 299", self.words(view))
        self.assertGreaterEqual(self.drawn(view, "trace"), 3)

    def test_what_is_missing_stands_out_in_words_and_in_red(self) -> None:
        summary = self.record("scan.arrows", **LOSSY)
        (sink,) = summary.sinks
        self.assertGreater(summary.lost + summary.missed, 0)
        self.assertEqual(summary.triggers, summary.rows + summary.missed + summary.skipped)
        self.assertEqual(sink["rows"] + sink["lost"], summary.rows)
        recording = strobe.open(self.folder / "scan.arrows")
        for view in (self.of(summary), self.of(recording)):
            said = self.words(view)
            self.assertIn("Missing: ", said)
            self.assertNotIn("Nothing is missing", said)
            gaps, rest = divmod(self.drawn(view, "gap"), len(READ))
            self.assertEqual(rest, 0)
            self.assertGreater(gaps, 0)
            self.assertIn(f"rows are missing at {gaps} places", said)
        self.assertIn(f"{sink['lost']} rows were overwritten before they were read", self.words(self.of(recording)))

    def test_a_run_that_has_overwritten_rows_before_anybody_read_them_says_so(self) -> None:
        with strobe.run(event="soft", read=READ, rows=100, ring=16, engine="user") as run:
            run.start()
            run.trigger(100)
            view = self.of(run)
        self.assertNotIn("Nothing is missing", self.words(view))
        first = int(re.search(r"rows (\d+) to 99", self.words(view)).group(1))
        self.assertGreater(first, 0)
        self.assertIn(f"The rows before row {first} were overwritten", self.words(view))

    def test_a_summary_draws_no_file_that_is_another_by_now(self) -> None:
        summary = self.record("scan.arrows")
        self.record("scan.arrows", rows=20, overwrite=True)
        self.assertEqual(self.drawn(self.of(summary), "trace"), 0)
        (self.folder / "scan.arrows").unlink()
        self.assertEqual(self.drawn(self.of(summary), "trace"), 0)

    def test_a_file_that_was_cut_off_shows_its_rows_and_says_so(self) -> None:
        self.record("scan.arrows")
        whole = (self.folder / "scan.arrows").read_bytes()
        (self.folder / "cut.arrows").write_bytes(whole[:len(whole) * 2 // 3])
        view = self.of(strobe.open(self.folder / "cut.arrows"))
        self.assertIn("what is missing is not known", self.words(view))
        self.assertGreaterEqual(self.drawn(view, "trace"), 3)

    def test_a_name_is_text_and_no_markup(self) -> None:
        view = self.of(self.record("<script> & <b>.arrows", rows=5))
        self.assertIn("<script> & <b>.arrows", self.words(view))

    def test_a_run_of_a_server_looks_the_same_and_one_that_is_gone_says_why(self) -> None:
        daemon = Daemon()
        self.addCleanup(daemon.close)
        with strobe.connect(daemon.url).run(event="timer:1kHz", read=READ, rows=300, engine="user") as run:
            list(run.read(on_loss="raise"))
            self.assertEqual(self.figures(self.of(run))[1], "300")
            self.assertIn("rows 0 to 299", self.words(self.of(run)))
        daemon.process.kill()
        daemon.process.wait()
        self.assertIn("127.0.0.1", self.words(xml.fromstring(run._repr_html_())))


if __name__ == "__main__":
    unittest.main()

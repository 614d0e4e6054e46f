# SPDX-License-Identifier: MIT OR Apache-2.0
"""What runs compute, keep and do in Python: against NumPy, against what was recorded, and what is refused."""

import os
import tempfile
import threading
import unittest

import numpy as np
import strobe
from daemon import Daemon, wait_for

READ = ["sim.counter", "sim.sine", "sim.noise"]
DERIVE = {
    "step": "diff(sim.counter)",
    "smooth": "mean(sim.noise, 4)",
    "most": "max(sim.sine since emit)",
    "some": "count(since emit)",
}


def triggered(triggers: int, **words) -> tuple[strobe.Run, np.ndarray, list[strobe.Block]]:
    """A run of so many triggers; its rows as they are, and its blocks."""
    with strobe.run(event="soft", engine="user", ring=8192, **words) as run:
        run.start()
        run.trigger(triggers)
        blocks = list(run.read(follow=False))
    return run, np.concatenate([block.array for block in blocks]), blocks


def values(blocks: list[strobe.Block], name: str) -> np.ndarray:
    return np.concatenate([block[name] for block in blocks])


class Rules(unittest.TestCase):
    def exact(self, run: strobe.Run, rows: int, triggers: int) -> None:
        account = run.account
        self.assertEqual(account.triggers, account.rows + account.missed + account.skipped)
        self.assertEqual((account.rows, account.triggers, account.missed, account.lost), (rows, triggers, 0, 0))
        self.assertEqual(run.skipped, triggers - rows)

    def test_derived_columns_are_what_numpy_makes_of_the_others(self) -> None:
        run, rows, blocks = triggered(1000, read=READ, derive=DERIVE)
        self.exact(run, 1000, 1000)
        names = [channel.name for channel in run.info.channels]
        self.assertEqual(names, [*READ, *DERIVE])
        self.assertEqual(run.info.channels[names.index("smooth")].unit, run.info.channels[2].unit)
        self.assertEqual(values(blocks, "step").tolist(), [0, *[1] * 999])
        noise = values(blocks, "sim.noise")
        means = np.convolve(noise, np.ones(4) / 4, "valid")
        np.testing.assert_allclose(values(blocks, "smooth")[3:], means, rtol=0, atol=1e-12)
        # Each row is kept: it is the only one since the last.
        np.testing.assert_array_equal(values(blocks, "most"), values(blocks, "sim.sine"))
        self.assertEqual(set(rows["some"].tolist()), {1})
        self.assertFalse(any(block.failed[name].any() for block in blocks for name in names))

    def test_rows_that_are_left_out_are_skipped_and_what_is_kept_knows_of_them(self) -> None:
        _, all_of_them, blocks = triggered(1000, read=READ)
        sine = values(blocks, "sim.sine")
        run, rows, blocks = triggered(1000, read=READ, derive=DERIVE, every=np.int64(25))
        self.exact(run, 40, 1000)
        self.assertEqual(rows["trigger"].tolist(), list(range(24, 1000, 25)))
        np.testing.assert_array_equal(values(blocks, "most"), sine.reshape(40, 25).max(axis=1))
        self.assertEqual(set(rows["some"].tolist()), {25})
        run, rows, _ = triggered(1000, read=READ, keep=["sim.counter % 2 == 1", "sim.sine > 0.5 V"])
        wanted = [n for n in range(1, 1000, 2) if sine[n] > 0.5]
        self.exact(run, len(wanted), 1000)
        self.assertEqual(rows["sim.counter"].tolist(), wanted)
        self.assertEqual(all_of_them["sim.counter"].tolist(), list(range(1000)))

    def test_a_rule_writes_its_output_and_changes_its_variable_where_it_is_met(self) -> None:
        fire: strobe.Actions = {"set": {"sim.latch": 1}, "then": {"next": "next + 100", "fired": "fired + 1"}}
        rest: strobe.Actions = {"set": {"sim.latch": 0}}
        run, rows, _ = triggered(
            1000, read=["sim.counter", "sim.latch"], let={"next": "50 like sim.counter", "fired": 0},
            derive={"at": "next", "times": "fired"},
            when=[("sim.counter % 100 == 60", rest), ("sim.counter >= next", fire)])
        self.exact(run, 1000, 1000)
        self.assertEqual(run.info.outputs, ("sim.latch", "sim.latch#2"))
        for row in rows[61:]:
            counter = int(row["sim.counter"])
            times = (counter + 49) // 100
            self.assertEqual((row["times"], row["at"]), (times, 50 + 100 * times), row)
            self.assertEqual(row["sim.latch"], 1 if 51 <= counter % 100 <= 60 else 0, row)

    def test_a_variable_that_is_tuned_is_new_in_the_next_row(self) -> None:
        with strobe.run(event="soft", engine="user", read=["sim.counter"], tune={"limit": "3 like sim.counter", "volts": "2.5 V"},
                        derive={"far": "sim.counter >= limit"}, ring=64) as run:
            run.start()
            run.trigger(5)
            run.tune(limit=7, volts="-500 mV")
            run.trigger(5)
            strobe.attach(f"user:{run.info.run}").tune({"volts": 0.5})
            run.trigger(1)
            for values, wanted in (({"limits": 1}, "limits of the run on soft"), ({"limit": 1.5}, "tune '1.5', column 1"),
                                   ({"volts": "1 mm"}, "tune '1 mm'")):
                with self.assertRaises(strobe.Error) as caught:
                    run.tune(values)
                self.assertTrue(str(caught.exception).startswith(wanted), caught.exception)
                self.assertTrue(caught.exception.remedy)
            with self.assertRaises(strobe.Error):
                run.tune(limit=True)
            run.stop()
            block, = run.read(follow=False)
        self.assertEqual(block["limit"].tolist(), [3] * 5 + [7] * 6)
        self.assertEqual(block["volts"].tolist(), [2.5] * 5 + [-0.5] * 5 + [0.5])
        self.assertEqual(block["far"].tolist(), [0, 0, 0, 1, 1, 0, 0, 1, 1, 1, 1])
        with self.assertRaises(strobe.Error) as ended:
            run.tune(limit=1)
        self.assertTrue(ended.exception.remedy)

    def test_a_recording_of_a_run_that_was_tuned_says_with_what_each_row_was_computed(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            files = [f"{folder}/rows.{kind}" for kind in ("arrows", "h5")]
            with strobe.run(event="soft", engine="user", ring=8192, read=["sim.counter"], tune={"limit": "2.5 V", "n": 1},
                            rows=400) as run:
                def tune() -> None:
                    try:
                        wait_for(lambda: run.state == "running", "the recorder starts the run")
                        run.trigger(200)
                        run.tune(limit=4.5)
                        run.trigger(200)
                    except BaseException:
                        # Else the recording had no end.
                        run.stop()
                        raise

                beside = threading.Thread(target=tune)
                beside.start()
                run.record(*files)
                beside.join()
            for file in files:
                limits = np.concatenate([block["limit"] for block in strobe.open(file)])
                self.assertEqual(limits.tolist(), [2.5] * 200 + [4.5] * 200, file)

    def test_a_run_of_a_server_is_tuned(self) -> None:
        daemon = Daemon()
        self.addCleanup(daemon.close)
        with strobe.connect(daemon.url).run(event="soft", engine="user", read=["sim.counter"], tune={"limit": 3}) as run:
            run.start()
            run.trigger(2)
            run.tune(limit=4)
            run.trigger(2)
            with self.assertRaises(strobe.Error) as caught:
                run.tune(limits=4)
            self.assertEqual(caught.exception.remedy, "this run has limit")
            run.stop()
            block, = run.read(follow=False)
        self.assertEqual(block["limit"].tolist(), [3, 3, 4, 4])

    def test_texts_as_a_recipe_has_them_say_the_same(self) -> None:
        words = {"read": ["sim.counter"], "every": 3}
        pairs = triggered(300, derive={"step": "diff(sim.counter) in 1"}, let={"n": 0}, when=[("sim.counter % 2", {"then": {"n": "n + 2"}})],
                          keep="n & 3 == 2", **words)
        texts = triggered(300, derive="step = diff(sim.counter) in 1", let=["n = 0"], when=[("sim.counter % 2", {"then": "n += 2"})],
                          keep=["n & 3 == 2"], **words)
        self.assertGreater(len(pairs[1]), 20)
        recipe = ('event = "soft"\nengine = "user"\nring = 8192\nread = ["sim.counter"]\nderive = ["step = diff(sim.counter) in 1"]\n'
                  'let = ["n = 0"]\nkeep = ["n & 3 == 2"]\nevery = 3\n[[rule]]\nwhen = "sim.counter % 2"\nthen = ["n += 2"]\n')
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "scan.toml")
            with open(file, "w") as out:
                out.write(recipe)
            with strobe.run(file) as run:
                run.start()
                run.trigger(300)
                rows = np.concatenate([block.array for block in run.read(follow=False)])
        for name in ("trigger", "sim.counter", "step"):
            np.testing.assert_array_equal(texts[1][name], pairs[1][name])
            np.testing.assert_array_equal(rows[name], pairs[1][name])

    def test_a_program_on_a_recording_gives_the_rows_that_the_run_would_have_had(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            file = f"{folder}/all.arrows"
            with strobe.run(event="soft", engine="user", ring=8192, read=READ, rows=1000) as run:
                run.start()
                run.trigger(1000)
                run.record(file)
            tried = strobe.open(file, derive=DERIVE, keep="sim.sine > 0.2 V", every=3)
            found = np.concatenate([block.array for block in tried])
            _, live, _ = triggered(1000, read=READ, derive=DERIVE, keep="sim.sine > 0.2 V", every=3)
            for name in ("trigger", *READ, *DERIVE):
                np.testing.assert_array_equal(found[name], live[name], name)
            self.assertEqual((tried.account.rows, tried.account.skipped), (len(live), 1000 - len(live)))
            summary = tried.record(f"{folder}/some.h5")
            self.assertEqual((summary.rows, summary.skipped), (len(live), 1000 - len(live)))

    def test_a_run_of_a_server_computes_the_same(self) -> None:
        daemon = Daemon()
        self.addCleanup(daemon.close)
        words = {"read": READ, "derive": DERIVE, "every": 10, "let": {"n": 0}, "when": [("sim.counter % 2", {"then": {"n": "n + 1"}})]}
        with strobe.connect(daemon.url).run(event="timer:1kHz", engine="user", rows=20, **words) as run:
            blocks = list(run)
        rows, account = np.concatenate([block.array for block in blocks]), run.account
        self.assertLessEqual(sum(block.missed for block in blocks), account.missed)
        self.assertEqual(account.triggers, account.rows + account.missed + account.skipped)
        self.assertEqual((len(rows), set(rows["some"].tolist())), (20, {10}))
        self.assertEqual(rows["sim.counter"].tolist(), list(range(9, 200, 10)))


class Refused(unittest.TestCase):
    def refused(self, **words) -> strobe.Error:
        with self.assertRaises(strobe.Error) as raised:
            strobe.run(event="soft", engine="user", **({"read": ["sim.counter"]} | words)).stop()
        error = raised.exception
        self.assertTrue(error.remedy, error)
        return error

    def test_what_is_wrong_in_an_expression_is_named_with_its_place(self) -> None:
        for words, part in [
            ({"derive": {"x": "diff(sim.nothing)"}}, "sim.nothing"),
            ({"derive": {"x": "sim.counter +"}}, "column"),
            ({"derive": {"since": "sim.counter"}}, "`since` is a word of the language"),
            ({"keep": "sim.counter > 1 V"}, "keep"),
            ({"every": 0}, "every"),
            ({"let": {"n": "many"}}, "let"),
            ({"let": {"n": 0}, "when": [("sim.counter >", {"then": {"n": 1}})]}, "when"),
            ({"when": [("sim.counter > n", {"set": {"sim.nothing": 1}})]}, "sim.nothing"),
        ]:
            with self.subTest(words=words):
                self.assertIn(part, str(self.refused(**words)))

    def test_what_is_of_another_form_is_named_by_its_keyword(self) -> None:
        rule = ("sim.counter > 3", {"set": {"sim.latch": 1}})
        for words, named in [
            ({"derive": 3}, "derive"),
            ({"derive": {"x": None}}, "derive['x']"),
            ({"derive": {3: "sim.counter"}}, "derive"),
            ({"keep": ["sim.counter > 1", 5]}, "keep[1]"),
            ({"every": 2.5}, "every"),
            ({"every": True}, "every"),
            ({"let": {"n": [1]}}, "let['n']"),
            ({"when": rule}, "when[0]"),
            ({"when": "sim.counter > 3"}, "when"),
            ({"when": [("sim.counter > 3",)]}, "when[0]"),
            ({"when": [rule, ("sim.counter > 3", {"do": 1})]}, "when[1]"),
            ({"when": [("sim.counter > 3", {"set": {"sim.latch": "high"}})]}, "when[0]['set']['sim.latch']"),
            ({"set": {"sim.latch": 1.5}}, "set['sim.latch']"),
        ]:
            with self.subTest(words=words):
                self.assertEqual(self.refused(**words).object, named)

    def test_a_program_on_a_recording_has_the_same_errors(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            file = f"{folder}/all.arrows"
            strobe.record(None, file, event="timer:1kHz", engine="user", read=["sim.counter"], rows=10)
            for words, part in [({"derive": {"x": "sim.sine"}}, "sim.sine"), ({"every": 0}, "every"), ({"keep": 1}, "keep")]:
                with self.subTest(words=words), self.assertRaises(strobe.Error) as raised:
                    strobe.open(file, **words)
                self.assertIn(part, str(raised.exception))


if __name__ == "__main__":
    unittest.main()

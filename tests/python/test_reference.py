# SPDX-License-Identifier: MIT OR Apache-2.0
"""docs/reference/python.md is what the docstrings say; each public name has one; and what they show is what happens."""

import contextlib
import doctest
import importlib
import inspect
import os
import pkgutil
import tempfile
import unittest
import warnings
from collections.abc import Iterator

import reference
import strobe
from daemon import Daemon

#: What stands on libraries that are not installed here has no examples.
OTHERS = {"__main__", "_live", "bluesky", "epics", "sardana", "tango"}


class Reference(unittest.TestCase):
    def test_the_page_is_what_the_docstrings_say(self) -> None:
        self.assertEqual(reference.PAGE.read_text(), reference.page(), "run tests/python/run reference.py")

    def test_the_page_has_each_public_name(self) -> None:
        page = reference.page()
        for name in strobe.__all__:
            self.assertIn(f"### `strobe.{name}`\n", page)

    def test_each_public_name_has_a_docstring(self) -> None:
        for name in strobe.__all__:
            one = getattr(strobe, name)
            self.assertTrue(one.__doc__, name)
            for member, what in vars(one).items() if inspect.isclass(one) else ():
                if not member.startswith("_") and (callable(what) or isinstance(what, property | classmethod)):
                    self.assertTrue(what.__doc__, f"{name}.{member}")


class Examples(unittest.TestCase):
    def found(self) -> Iterator[doctest.DocTest]:
        finder = doctest.DocTestFinder(exclude_empty=True)
        names = [f"strobe.{module.name}" for module in pkgutil.iter_modules(strobe.__path__) if module.name not in OTHERS]
        for name in ["strobe", *names]:
            yield from finder.find(importlib.import_module(name), name, extraglobs={"strobe": strobe})

    def test_each_example_of_a_docstring_does_what_it_shows(self) -> None:
        daemon = Daemon()
        self.addCleanup(daemon.close)
        examples = [test for test in self.found() if test.examples]
        self.assertGreater(len(examples), 20)
        for test in examples:
            for example in test.examples:
                example.source = example.source.replace("http://127.0.0.1:8000", daemon.url)
            said = list[str]()
            with self.subTest(test.name), tempfile.TemporaryDirectory(prefix="strobe-python-") as folder, contextlib.chdir(folder):
                # A busy machine misses triggers, and these are not about that.
                with warnings.catch_warnings(action="ignore", category=strobe.Lost):
                    found = doctest.DocTestRunner(verbose=False).run(test, out=said.append)
                self.assertEqual(found.failed, 0, "".join(said))
                self.assertEqual(os.getcwd(), os.path.realpath(folder))


if __name__ == "__main__":
    unittest.main()

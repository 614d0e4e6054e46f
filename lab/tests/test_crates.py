# SPDX-License-Identifier: MIT OR Apache-2.0
"""lab/crates sees the arrows between modules, also those that a re-export hides, and no others."""

import tempfile
import unittest
from pathlib import Path

from .test_parts import program

crates = program("crates")


class Crates(unittest.TestCase):
    def crate(self, **files: str):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        for name, text in {"lib": "#![forbid(unsafe_code)]\n", **files}.items():
            path = Path(place.name, "src", *name.split("__")).with_suffix(".rs")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return crates.Crate(Path(place.name))

    def circles(self, **files: str) -> list[str]:
        return [fault for arrows in self.crate(**files).arrows().values() for fault in crates.circles(arrows)]

    def test_a_circle_of_siblings_is_seen_and_one_with_the_parent_is_not(self):
        self.assertEqual(self.circles(a="use crate::b::B;\n", b="fn b() { crate::a::a() }\n"), ["a circle: a <- b <- a"])
        self.assertEqual(self.circles(a="mod b;\nuse b::B;\n", a__b="use super::A;\n"), [])

    def test_a_folder_is_compared_as_a_whole(self):
        self.assertEqual(len(self.circles(a="mod deep;\n", a__deep="use crate::b::B;\n", b="use crate::a::A;\n")), 1)

    def test_a_re_export_leads_to_the_module_that_defines_it(self):
        files = {"lib": "mod a;\nmod b;\npub use a::A;\n", "a": "use crate::b::{B, other::C as D};\n", "b": "use crate::A;\n"}
        self.assertEqual(len(self.circles(**files)), 1)

    def test_what_is_for_tests_only_and_comments_are_no_arrows(self):
        tests = "#[cfg(test)]\nmod tests {\n    use crate::b::B;\n}\n"
        self.assertEqual(self.circles(a=tests, b="use crate::a::A;\n"), [])
        self.assertEqual(self.circles(a="/// See [`crate::b::B`].\n", b="use crate::a::A;\n"), [])
        files = {"a": "#[cfg(test)]\nmod fake;\n", "a__fake": "use crate::b::B;\n", "b": "use crate::a::A;\n"}
        self.assertEqual(self.circles(**files), [])

    def test_unsafe_code_is_seen_wherever_it_stands(self):
        self.assertEqual(len(self.crate(a="fn a() { unsafe { b() } }\n").unsafe()), 1)
        self.assertEqual(self.crate(a="/// Nothing unsafe.\n").unsafe(), [])
        self.assertEqual(len(self.crate(lib="").unsafe()), 1)

    def test_only_arrows_that_others_do_not_imply_are_drawn(self):
        picture = crates.draw({"top": ["middle", "low"], "middle": ["low"], "low": []})
        self.assertEqual([line.strip() for line in picture.splitlines() if "-->" in line], ["top --> middle", "middle --> low"])

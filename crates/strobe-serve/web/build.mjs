// SPDX-License-Identifier: MIT OR Apache-2.0
// Makes dist/, which goes into the daemon: a page, its script, its styles and its icon. With --tests the tests, in build/.
import { build } from "esbuild";
import { copyFileSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";

const LIMIT = 200_000;
const SPDX = "SPDX-License-Identifier: MIT OR Apache-2.0";
const FILES = ["index.html", "page.js", "page.css", "page.svg"];

if (process.argv.includes("--tests")) {
  rmSync("build/test", { recursive: true, force: true });
  await build({
    entryPoints: readdirSync("test").map((name) => `test/${name}`),
    bundle: true,
    format: "esm",
    platform: "node",
    outdir: "build/test",
    outExtension: { ".js": ".mjs" },
  });
} else {
  rmSync("dist", { recursive: true, force: true });
  mkdirSync("dist");
  await build({
    entryPoints: [{ in: "src/main.ts", out: "page" }],
    bundle: true,
    minify: true,
    format: "esm",
    target: "es2022",
    charset: "utf8",
    legalComments: "inline",
    // uPlot's licence wants to be in every copy.
    banner: { js: `// ${SPDX}\n/* uPlot:\n${readFileSync("node_modules/uplot/LICENSE", "utf8")}*/`, css: `/* ${SPDX} */` },
    outdir: "dist",
  });
  for (const name of ["index.html", "page.svg"]) copyFileSync(`src/${name}`, `dist/${name}`);
  const size = FILES.map((name) => statSync(`dist/${name}`).size).reduce((sum, size) => sum + size, 0);
  console.log(`dist: ${size} bytes`);
  if (size >= LIMIT) throw new Error(`dist is larger than ${LIMIT} bytes: leave something out`);
}

// Bundles the tests into out/.

import * as path from "node:path";
import { build } from "esbuild";

await build({
  absWorkingDir: path.dirname(import.meta.dirname),
  entryPoints: { "executable.test": "test/executable.test.ts", "version.test": "test/version.test.ts", suite: "test/vscode/suite.ts" },
  outdir: "out",
  bundle: true,
  platform: "node",
  format: "cjs",
  target: "node20",
  external: ["vscode"],
  logLevel: "warning",
});

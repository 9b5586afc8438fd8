// Writes the directory build/, which is exactly the content of the package: the bundled extension, its manifest with the
// version of apflint, the JSON Schemas, the licenses and the README.

import * as fs from "node:fs";
import * as path from "node:path";
import { build } from "esbuild";

const here = path.dirname(import.meta.dirname);
const repository = path.dirname(path.dirname(here));
const target = path.join(here, "build");

/** Return the version of apflint, of a development version that of the next release: the Marketplace accepts three numbers only. */
function readVersion() {
  const source = fs.readFileSync(path.join(repository, "apflint", "__init__.py"), "utf8");
  const version = /^__version__ = "(\d+\.\d+\.\d+)(?:\.dev\d+)?"$/m.exec(source)?.[1];
  if (version === undefined) {
    throw new Error("apflint/__init__.py has no version of the form 1.2.3");
  }
  return version;
}

/** Return the manifest without what only this directory needs. */
function makeManifest(version) {
  const { scripts, dependencies, devDependencies, private: _, ...manifest } = JSON.parse(
    fs.readFileSync(path.join(here, "package.json"), "utf8"),
  );
  for (const schema of manifest.contributes.tomlValidation) {
    schema.url = schema.url.replace("/apflint/main/", `/apflint/v${version}/`);
  }
  return { ...manifest, version };
}

/** Return the licenses of the bundled packages, which require that copies include them. */
function collectLicenses(inputs) {
  const packages = new Set(inputs.map((input) => /^(?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/]+/.exec(input)?.[0]));
  packages.delete(undefined);
  return [...packages].sort().map((directory) => {
    const { name, version, license } = JSON.parse(fs.readFileSync(path.join(here, directory, "package.json"), "utf8"));
    const file = fs.readdirSync(path.join(here, directory)).find((entry) => /^licen[cs]e/i.test(entry));
    if (file === undefined) {
      throw new Error(`${name} has no license file`);
    }
    return `${name} ${version} (${license})\n\n${fs.readFileSync(path.join(here, directory, file), "utf8").trim()}\n`;
  });
}

fs.rmSync(target, { recursive: true, force: true });
fs.mkdirSync(path.join(target, "schemas"), { recursive: true });
fs.writeFileSync(path.join(target, "package.json"), `${JSON.stringify(makeManifest(readVersion()), null, 2)}\n`);
fs.copyFileSync(path.join(here, "README.md"), path.join(target, "README.md"));
fs.copyFileSync(path.join(repository, "LICENSE"), path.join(target, "LICENSE"));
for (const schema of ["apflint-config.json", "apflint-test.json", "apflint-load.json", "apflint-goals.json"]) {
  fs.copyFileSync(path.join(repository, "schemas", schema), path.join(target, "schemas", schema));
}
const { metafile } = await build({
  absWorkingDir: here,
  entryPoints: ["src/extension.ts"],
  outfile: "build/extension.js",
  bundle: true,
  platform: "node",
  format: "cjs",
  target: "node20", // that of VS Code 1.91, the oldest in `engines`
  external: ["vscode"],
  minify: true,
  metafile: true,
  logLevel: "warning",
});
fs.writeFileSync(path.join(target, "THIRD_PARTY_LICENSES.txt"), collectLicenses(Object.keys(metafile.inputs)).join("\n---\n\n"));

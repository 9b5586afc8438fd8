import assert from "node:assert/strict";
import * as fs from "node:fs";
import * as os from "node:os";
import * as path from "node:path";
import { after, test } from "node:test";
import { readVersion } from "../src/version";

const LONG_MILLISECONDS = 60_000;
const directory = fs.mkdtempSync(path.join(os.tmpdir(), "apflint-version-"));

after(() => fs.rmSync(directory, { recursive: true, force: true }));

/** Write a program for Node.js and return the command that runs it. */
function program(name: string, source: string): [string, string] {
  const file = path.join(directory, `${name}.cjs`);
  fs.writeFileSync(file, source);
  return [process.execPath, file];
}

test("the version is what the program prints for --version", async () => {
  const command = program("good", `console.log("apflint", process.argv.slice(2).join(), process.cwd());`);
  assert.equal(await readVersion(command, directory, LONG_MILLISECONDS), `apflint --version ${fs.realpathSync(directory)}`);
});

test("a program that is not apflint, fails or is missing is reported with its command line", async () => {
  const commands = [program("other", `console.log("other 1.0");`), program("failing", `throw new Error("no module")`)];
  for (const command of [...commands, [path.join(directory, "missing")] as [string]]) {
    const message = `This program is not apflint, or fails: ${command.join(" ")} --version`;
    await assert.rejects(readVersion(command, directory, LONG_MILLISECONDS), { message });
  }
});

test("the cause of a failure is what the program printed", async () => {
  const read = (name: string, source: string) => readVersion(program(name, source), directory, LONG_MILLISECONDS);
  await assert.rejects(read("other", `console.log("other 1.0");`), ({ cause }: Error) => /other 1\.0/.test(`${cause}`));
  await assert.rejects(read("failing", `throw new Error("no module")`), ({ cause }: Error) => /no module/.test(`${cause}`));
});

test("a program that does not end is reported and ended", async () => {
  const command = program("endless", `setInterval(() => {}, 1000);`);
  const message = `This program did not end within 0.5 seconds: ${command.join(" ")} --version`;
  await assert.rejects(readVersion(command, directory, 500), { message });
  // If the program still ran, so would this test.
});

test("a program that ignores the signal to end is reported in time", { skip: process.platform === "win32" }, async () => {
  const ready = path.join(directory, "ready");
  const command = program(
    "stubborn",
    `const [fs, ready] = [require("node:fs"), ${JSON.stringify(ready)}];
    process.on("SIGTERM", () => {});
    fs.writeFileSync(ready, "");
    setInterval(() => fs.existsSync(ready) || process.exit(), 50);`,
  );
  await assert.rejects(readVersion(command, directory, 3_000), /did not end within 3 seconds/);
  assert.ok(fs.existsSync(ready), "the program ignores the signal before it is sent");
  fs.rmSync(ready);
});

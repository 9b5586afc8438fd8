import assert from "node:assert/strict";
import * as fs from "node:fs";
import * as os from "node:os";
import * as path from "node:path";
import { after, beforeEach, test } from "node:test";
import { findExecutable, replaceVariables } from "../src/executable";

const directory = fs.mkdtempSync(path.join(os.tmpdir(), "apflint-executable-"));
const suffix = process.platform === "win32" ? ".exe" : "";
const NOWHERE = { setting: "", interpreter: undefined, searchPath: "" };

beforeEach(() => fs.rmSync(directory, { recursive: true, force: true }));
after(() => fs.rmSync(directory, { recursive: true, force: true }));

/** Write a program and return its path. */
function program(name: string, mode = 0o755): string {
  const file = path.join(directory, `${name}${suffix}`);
  fs.mkdirSync(path.dirname(file), { recursive: true });
  fs.writeFileSync(file, "", { mode });
  return file;
}

test("the setting precedes the environment, and the environment precedes the PATH", () => {
  const [named, selected, searched] = [program("named/x"), program("environment/apflint"), program("path/apflint")];
  const interpreter = path.join(path.dirname(selected), "python");
  const searchPath = [path.join(directory, "empty"), path.dirname(searched)].join(path.delimiter);
  assert.equal(findExecutable({ setting: named, interpreter, searchPath }), named);
  assert.equal(findExecutable({ setting: "", interpreter, searchPath }), selected);
  assert.equal(findExecutable({ setting: "", interpreter: undefined, searchPath }), searched);
  assert.equal(findExecutable(NOWHERE), undefined);
});

test("an environment without apflint leaves the PATH", () => {
  const searched = program("path/apflint");
  const interpreter = path.join(directory, "environment", "python");
  assert.equal(findExecutable({ setting: "", interpreter, searchPath: path.dirname(searched) }), searched);
});

test("a name in the setting is searched in the PATH, and nothing else is if it is missing", () => {
  const uvx = program("path/uvx");
  program("path/apflint");
  const searchPath = path.dirname(uvx);
  assert.equal(findExecutable({ ...NOWHERE, setting: "uvx", searchPath }), uvx);
  assert.equal(findExecutable({ ...NOWHERE, setting: "pipx", searchPath }), undefined);
  assert.equal(findExecutable({ ...NOWHERE, setting: path.join(directory, "missing"), searchPath }), undefined);
});

test("relative paths are never used", () => {
  const file = program("apflint");
  const before = process.cwd();
  process.chdir(directory);
  try {
    for (const searchPath of ["", ".", path.delimiter]) {
      assert.equal(findExecutable({ ...NOWHERE, searchPath }), undefined);
    }
    assert.equal(findExecutable({ ...NOWHERE, setting: `.${path.sep}${path.basename(file)}` }), undefined);
    assert.equal(findExecutable({ ...NOWHERE, searchPath: directory }), file);
  } finally {
    process.chdir(before);
  }
});

test("directories and files without the permission to execute are not programs", { skip: process.platform === "win32" }, () => {
  fs.mkdirSync(path.join(directory, "a", "apflint"), { recursive: true });
  program("b/apflint", 0o644);
  const searchPath = ["a", "b"].map((name) => path.join(directory, name)).join(path.delimiter);
  assert.equal(findExecutable({ ...NOWHERE, searchPath }), undefined);
});

test("variables are replaced, and what has no value stays", () => {
  assert.equal(replaceVariables("${workspaceFolder}/.venv/bin/apflint", "/w/$&", "/home/a"), "/w/$&/.venv/bin/apflint");
  assert.equal(replaceVariables("${userHome}/bin/apflint", undefined, "/home/a"), "/home/a/bin/apflint");
  assert.equal(replaceVariables("${workspaceFolder}/x", undefined, "/home/a"), "${workspaceFolder}/x");
});

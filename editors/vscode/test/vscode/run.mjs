// Tests the extension in a real VS Code: the server of VS Code for the web on this machine, and its window in headless Chromium.
// `npm run get` in this directory installs both.
//
//   node test/vscode/run.mjs [--chromium PATH] [--screenshots DIRECTORY]
//
// The extension of build/ runs in the extension host, as does out/suite.js, which checks it through the API of VS Code. Each scenario
// is a new window with its own workspace and its own programs. The window itself is checked as well, for what the user sees.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import * as fs from "node:fs";
import * as net from "node:net";
import * as os from "node:os";
import * as path from "node:path";
import { parseArgs } from "node:util";
import { chromium, errors } from "playwright-core";

const TIMEOUT_MILLISECONDS = 120_000;
const CLICK_MILLISECONDS = 10_000;
const extension = path.dirname(path.dirname(import.meta.dirname));
const { values: options } = parseArgs({
  options: { chromium: { type: "string", default: "/usr/bin/chromium" }, screenshots: { type: "string" } },
});

const FLOW_SCHEMA = `apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: FlowSchema
metadata:
  name: nightly-backup
spec:
  priorityLevelConfiguration: {name: workload-low}
  matchingPrecedence: 8000
  distinguisherMethod: {type: ByUser}
  rules:
    - subjects:
        - kind: ServiceAccount
          serviceAccount: {namespace: backup, name: runner}
      resourceRules:
        - verbs: [get, list, "*"]
          apiGroups: [""]
          resources: [pods]
          namespaces: ["*"]
`;

const EVIL = { "apflint.path": "${workspaceFolder}/evil", "apflint.arguments": ["--evil"] };
const FINDING = 'verbs contains "*" and other items';
const SCENARIOS = {
  /** apflint is in the PATH. */
  findings: { trusted: true, hasApflint: true, settings: {}, finding: FINDING, shows: [] },
  /** apflint is missing. */
  missing: { trusted: true, hasApflint: false, settings: {}, shows: ["nor in the PATH.", "How to Install", "Open Settings"] },
  /** apflint is in an environment that is selected after the start. */
  environment: { trusted: true, hasApflint: false, settings: {}, finding: FINDING, shows: [] },
  /** The settings and the environment of a workspace contain a program, and the user does not trust the workspace. */
  untrusted: { trusted: false, hasApflint: true, settings: EVIL, finding: FINDING, shows: ["Restricted Mode"] },
  /** The same settings in a workspace that the user trusts. The program fails. */
  trusted: { trusted: true, hasApflint: true, settings: EVIL, shows: ["This program is not apflint, or fails", "Show Log"] },
};

for (const [name, scenario] of Object.entries(SCENARIOS)) {
  await runScenario(name, scenario);
  console.log(`ok ${name}`);
}

async function runScenario(name, scenario) {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), "apflint-vscode-"));
  const workspace = path.join(directory, "workspace");
  const result = path.join(directory, "result.json");
  writeWorkspace(workspace, scenario.settings);
  writePythonExtension(path.join(directory, "extensions"));
  const port = await findFreePort();
  const server = startServer(directory, port, {
    PATH: scenario.hasApflint ? process.env.PATH : path.join(directory, "no-programs"),
    APFLINT_TEST_INTERPRETER: path.join(scenario.trusted ? findDirectoryOfApflint() : workspace, "python"),
    APFLINT_TEST_SCENARIO: name,
    APFLINT_TEST_RESULT: result,
  });
  const browser = await chromium.launch({
    executablePath: options.chromium,
    args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
  });
  try {
    await server.ready;
    const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
    await page.goto(windowAddress(port, workspace), { timeout: TIMEOUT_MILLISECONDS });
    if (scenario.trusted) {
      await trustWorkspace(page);
    }
    const { error } = await waitForResult(result);
    assert.equal(error, null, `${name}: ${error}\n${server.output()}`);
    try {
      await checkWindow(page, scenario);
    } finally {
      if (options.screenshots !== undefined) {
        fs.mkdirSync(options.screenshots, { recursive: true });
        await page.screenshot({ path: path.join(options.screenshots, `${name}.png`) });
      }
    }
    const hasRunEvil = fs.existsSync(path.join(workspace, "evil-has-run"));
    assert.equal(hasRunEvil, name === "trusted", "a program of the workspace runs if, and only if, the user trusts the workspace");
  } finally {
    await browser.close();
    await server.stop();
    fs.rmSync(directory, { recursive: true, force: true });
  }
}

/** Wait until the window shows the texts of a scenario, and its finding in the panel Problems and below the text in the editor. */
async function checkWindow(page, { finding, shows }) {
  const wanted = shows.map((text) => page.getByText(text));
  if (finding !== undefined) {
    wanted.push(page.getByRole("treeitem", { name: `Error: ${finding}` }).getByText(finding), page.locator(".view-overlays .squiggly-error"));
  }
  for (const locator of wanted) {
    await locator.filter({ visible: true }).first().waitFor({ timeout: TIMEOUT_MILLISECONDS });
  }
}

function writeWorkspace(workspace, settings) {
  fs.mkdirSync(path.join(workspace, ".vscode"), { recursive: true });
  fs.writeFileSync(path.join(workspace, ".vscode", "settings.json"), JSON.stringify(settings));
  fs.writeFileSync(path.join(workspace, "flow-schema.yaml"), FLOW_SCHEMA);
  const evil = `#!/bin/sh\ntouch "$(dirname "$0")/evil-has-run"\nexit 1\n`;
  for (const name of ["evil", "apflint"]) {
    fs.writeFileSync(path.join(workspace, name), evil, { mode: 0o755 });
  }
}

function findDirectoryOfApflint() {
  const directories = process.env.PATH.split(path.delimiter);
  const found = directories.find((directory) => fs.existsSync(path.join(directory, "apflint")));
  assert.ok(found, "apflint is not in the PATH");
  return found;
}

/** Write a stand-in of the Python extension with the part of its API that our extension uses. It has no environment until it is called. */
function writePythonExtension(extensions) {
  const directory = path.join(extensions, "ms-python.python-1.0.0");
  fs.mkdirSync(directory, { recursive: true });
  const manifest = {
    publisher: "ms-python",
    name: "python",
    version: "1.0.0",
    engines: { vscode: "^1.91.0" },
    main: "./main.js",
    capabilities: { untrustedWorkspaces: { supported: "limited", description: "as that of the original" } },
  };
  fs.writeFileSync(path.join(directory, "package.json"), JSON.stringify(manifest));
  fs.writeFileSync(
    path.join(directory, "main.js"),
    `const vscode = require("vscode");
    exports.activate = (context) => {
      const selected = new vscode.EventEmitter();
      let interpreter;
      context.subscriptions.push(vscode.commands.registerCommand("test.selectEnvironment", () => {
        interpreter = process.env.APFLINT_TEST_INTERPRETER;
        selected.fire({});
      }));
      return { environments: {
        getActiveEnvironmentPath: () => ({ id: "test", path: interpreter }),
        resolveEnvironment: async ({ path }) => path && { executable: { uri: vscode.Uri.file(path) } },
        onDidChangeActiveEnvironmentPath: selected.event,
      } };
    };`,
  );
}

function findFreePort() {
  return new Promise((resolve) => {
    const probe = net.createServer().listen(0, "127.0.0.1", () => {
      const { port } = probe.address();
      probe.close(() => resolve(port));
    });
  });
}

function startServer(directory, port, variables) {
  const main = path.join(import.meta.dirname, "node_modules/code-server/lib/vscode/out/server-main.js");
  const data = ["--server-data-dir", path.join(directory, "data"), "--extensions-dir", path.join(directory, "extensions")];
  const flags = ["--without-connection-token", "--accept-server-license-terms", "--telemetry-level", "off"];
  const child = spawn(process.execPath, [main, "--host", "127.0.0.1", "--port", `${port}`, ...flags, ...data], {
    // With VSCODE_CLI, the extension host gets these variables instead of those of a login shell.
    env: { ...process.env, VSCODE_CLI: "1", ...variables },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  const ended = new Promise((resolve) => child.once("exit", resolve));
  const ready = new Promise((resolve, reject) => {
    const listen = (chunk) => {
      output += chunk;
      if (output.includes("Extension host agent listening")) {
        resolve();
      }
    };
    child.stdout.on("data", listen);
    child.stderr.on("data", listen);
    child.once("exit", () => reject(new Error(`the server of VS Code ended:\n${output}`)));
  });
  const stop = async () => {
    child.kill();
    await ended;
  };
  return { ready, stop, output: () => output };
}

function windowAddress(port, workspace) {
  const remote = (file) => `vscode-remote://127.0.0.1:${port}${file}`;
  const payload = [
    ["extensionDevelopmentPath", remote(path.join(extension, "build"))],
    ["extensionTestsPath", remote(path.join(extension, "out", "suite.js"))],
  ];
  const query = new URLSearchParams({ folder: workspace, payload: JSON.stringify(payload) });
  return `http://127.0.0.1:${port}/?${query}`;
}

/**
 * A window for tests starts in restricted mode, and does not ask. VS Code creates the button again whenever it redraws the editor, so a
 * click can miss: try again until the window has left restricted mode.
 */
async function trustWorkspace(page) {
  const restricted = page.locator(".statusbar-item").getByText("Restricted Mode");
  await restricted.waitFor({ timeout: TIMEOUT_MILLISECONDS });
  const end = Date.now() + TIMEOUT_MILLISECONDS;
  while (await restricted.isVisible()) {
    try {
      await restricted.click({ timeout: CLICK_MILLISECONDS });
      await page.getByRole("button", { name: "Trust", exact: true }).first().click({ timeout: CLICK_MILLISECONDS });
      await restricted.waitFor({ state: "hidden", timeout: CLICK_MILLISECONDS });
    } catch (error) {
      if (!(error instanceof errors.TimeoutError) || Date.now() > end) {
        throw error;
      }
    }
  }
}

async function waitForResult(file) {
  const end = Date.now() + TIMEOUT_MILLISECONDS;
  while (Date.now() < end) {
    if (fs.existsSync(file)) {
      return JSON.parse(fs.readFileSync(file, "utf8"));
    }
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  return { error: "the suite did not end" };
}

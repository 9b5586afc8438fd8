// Runs in the extension host of a real VS Code. See run.mjs.

import assert from "node:assert/strict";
import * as fs from "node:fs";
import * as vscode from "vscode";

const TIMEOUT_MILLISECONDS = 60_000;
const SCENARIOS: Record<string, () => Promise<void>> = {
  findings: checkFindings,
  missing: checkMissingProgram,
  environment: checkSelectedEnvironment,
  untrusted: checkUntrustedWorkspace,
  trusted: checkSettingsOfTrustedWorkspace,
};

/** VS Code calls this function. It never returns: VS Code would end the extension host, which takes its findings out of the window. */
export async function run(): Promise<never> {
  let error: string | null = null;
  try {
    await SCENARIOS[process.env.APFLINT_TEST_SCENARIO ?? ""]?.();
  } catch (problem) {
    error = problem instanceof Error ? (problem.stack ?? problem.message) : `${problem}`;
  }
  const result = process.env.APFLINT_TEST_RESULT ?? "";
  fs.writeFileSync(`${result}.new`, JSON.stringify({ error }));
  fs.renameSync(`${result}.new`, result); // so that nobody reads half of it
  return new Promise<never>(() => {}); // run.mjs checks and closes the window
}

async function checkFindings(): Promise<void> {
  await waitForTrust();
  const document = await openFlowSchema();
  const [finding] = await waitForFindings(document);
  assert.ok(finding);
  assert.equal(finding.source, "apflint");
  assert.equal(ruleOf(finding), "APF210");
  assert.equal(finding.message.split("\n")[0], 'verbs contains "*" and other items');
  assert.equal(document.getText(finding.range), '"*"');

  const hovers = await vscode.commands.executeCommand<vscode.Hover[]>(
    "vscode.executeHoverProvider",
    document.uri,
    document.positionAt(document.getText().indexOf("matchingPrecedence")),
  );
  const text = hovers.flatMap((hover) => hover.contents).map((content) => (content as vscode.MarkdownString).value);
  assert.match(text.join("\n"), /precedence/i);

  await vscode.commands.executeCommand("apflint.restart");
  assert.equal((await waitForFindings(document)).length, 1);

  const kinds = [vscode.CodeActionKind.QuickFix, vscode.CodeActionKind.SourceFixAll.append("apflint")];
  for (const kind of kinds) {
    const actions = await vscode.commands.executeCommand<vscode.CodeAction[]>(
      "vscode.executeCodeActionProvider",
      document.uri,
      finding.range,
      kind.value,
      10,
    );
    const fix = actions.find((action) => action.edit !== undefined && !action.title.startsWith("Ignore"));
    assert.ok(fix?.edit, `${kind.value}: ${actions.map((action) => action.title).join(", ")}`);
    assert.ok(await vscode.workspace.applyEdit(fix.edit));
    assert.match(document.getText(), /verbs: \["\*"\]/);
    await waitUntil(() => vscode.languages.getDiagnostics(document.uri).length === 0, "the fixed file has no findings");
    await vscode.commands.executeCommand("undo");
    await waitForFindings(document);
  }
  await showProblems();
}

async function checkMissingProgram(): Promise<void> {
  await waitForTrust();
  const document = await openFlowSchema();
  await activate();
  assert.deepEqual(vscode.languages.getDiagnostics(document.uri), []);
}

async function checkSelectedEnvironment(): Promise<void> {
  await waitForTrust();
  const document = await openFlowSchema();
  await activate();
  assert.deepEqual(vscode.languages.getDiagnostics(document.uri), []);
  await vscode.commands.executeCommand("test.selectEnvironment");
  assert.equal((await waitForFindings(document)).length, 1);
  await showProblems();
}

async function checkUntrustedWorkspace(): Promise<void> {
  assert.equal(vscode.workspace.isTrusted, false);
  const document = await openFlowSchema();
  const settings = vscode.workspace.getConfiguration("apflint");
  assert.equal(settings.get("path"), "");
  assert.deepEqual(settings.get("arguments"), []);
  await activate();
  assert.equal((await waitForFindings(document)).length, 1);
  await vscode.extensions.getExtension("ms-python.python")?.activate();
  await vscode.commands.executeCommand("test.selectEnvironment");
  await vscode.commands.executeCommand("apflint.restart");
  assert.equal((await waitForFindings(document)).length, 1);
  await showProblems();
}

async function checkSettingsOfTrustedWorkspace(): Promise<void> {
  await waitForTrust();
  await openFlowSchema();
  await activate();
  const marker = vscode.Uri.joinPath(workspaceFolder(), "evil-has-run");
  await waitUntil(() => fs.existsSync(marker.fsPath), "the program of the settings has run");
}

/** Open no file before: its editor would replace the editor with the button that run.mjs clicks. */
async function waitForTrust(): Promise<void> {
  await waitUntil(() => vscode.workspace.isTrusted, "the workspace is trusted");
}

async function activate(): Promise<void> {
  const extension = vscode.extensions.getExtension("apflint.apflint");
  assert.ok(extension);
  await extension.activate();
}

function workspaceFolder(): vscode.Uri {
  const folder = vscode.workspace.workspaceFolders?.[0];
  assert.ok(folder);
  return folder.uri;
}

async function openFlowSchema(): Promise<vscode.TextDocument> {
  const document = await vscode.workspace.openTextDocument(vscode.Uri.joinPath(workspaceFolder(), "flow-schema.yaml"));
  await vscode.window.showTextDocument(document, { preview: false });
  return document;
}

async function waitForFindings(document: vscode.TextDocument): Promise<vscode.Diagnostic[]> {
  const read = () => vscode.languages.getDiagnostics(document.uri);
  await waitUntil(() => read().length > 0, "there are findings");
  return read();
}

async function showProblems(): Promise<void> {
  await vscode.commands.executeCommand("workbench.actions.view.problems");
}

function ruleOf(finding: vscode.Diagnostic): unknown {
  return typeof finding.code === "object" ? finding.code.value : finding.code;
}

async function waitUntil(isTrue: () => boolean, what: string): Promise<void> {
  const end = Date.now() + TIMEOUT_MILLISECONDS;
  while (!isTrue()) {
    assert.ok(Date.now() < end, `not in time: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

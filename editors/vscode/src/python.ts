import { PVSC_EXTENSION_ID, PythonExtension } from "@vscode/python-extension";
import { type Disposable, extensions, type LogOutputChannel, type Uri, workspace } from "vscode";

/**
 * Return the interpreter that is selected in the Python extension, or undefined without that extension.
 *
 * An environment can be part of the workspace, so it is only used in workspaces that the user trusts.
 */
export async function findInterpreter(folder: Uri | undefined, log: LogOutputChannel): Promise<string | undefined> {
  return askPythonExtension(log, async (environments) => {
    const environment = await environments.resolveEnvironment(environments.getActiveEnvironmentPath(folder));
    return environment?.executable.uri?.fsPath;
  });
}

/** Call a function whenever another environment is selected. */
export async function onDidSelectEnvironment(
  listener: () => void,
  log: LogOutputChannel,
): Promise<Disposable | undefined> {
  return askPythonExtension(log, async (environments) => environments.onDidChangeActiveEnvironmentPath(listener));
}

async function askPythonExtension<T>(
  log: LogOutputChannel,
  question: (environments: PythonExtension["environments"]) => Promise<T>,
): Promise<T | undefined> {
  if (!workspace.isTrusted || extensions.getExtension(PVSC_EXTENSION_ID) === undefined) {
    return undefined;
  }
  try {
    return await question((await PythonExtension.api()).environments);
  } catch (error) {
    log.warn(`The Python extension does not answer, so its environment is not searched: ${error}`);
    return undefined;
  }
}

import { commands, type ExtensionContext, window, workspace } from "vscode";
import { onDidSelectEnvironment } from "./python";
import { Server } from "./server";

let server: Server | undefined;

export async function activate(context: ExtensionContext): Promise<void> {
  const log = window.createOutputChannel("apflint", { log: true });
  const current = new Server(context.extensionPath, log);
  server = current;
  const restart = () => current.restart();
  const followEnvironment = async () => {
    const subscription = await onDidSelectEnvironment(restart, log);
    if (subscription !== undefined) {
      context.subscriptions.push(subscription);
    }
  };
  context.subscriptions.push(
    log,
    commands.registerCommand("apflint.restart", restart),
    commands.registerCommand("apflint.showLog", () => log.show()),
    workspace.onDidChangeConfiguration(async (event) => {
      if (["apflint.path", "apflint.arguments"].some((section) => event.affectsConfiguration(section))) {
        await restart();
      }
    }),
    workspace.onDidGrantWorkspaceTrust(async () => {
      await followEnvironment();
      await restart();
    }),
  );
  await followEnvironment();
  await restart();
}

/** VS Code waits for the returned promise, so that the server can end in order. */
export function deactivate(): Promise<void> | undefined {
  return server?.stop();
}

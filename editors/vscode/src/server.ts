import * as os from "node:os";
import { commands, env, type LogOutputChannel, Uri, window, workspace } from "vscode";
import { LanguageClient } from "vscode-languageclient/node";
import { findExecutable, replaceVariables } from "./executable";
import { findInterpreter } from "./python";
import { readVersion } from "./version";

const PAGE = "https://github.com/apflint/apflint/blob/main/docs/guides/editors/vscode.md";
const VERSION_TIMEOUT_MILLISECONDS = 60_000; // uvx downloads apflint first
const STOP_TIMEOUT_MILLISECONDS = 5_000;

/** The process `apflint lsp`, and the connection to it. */
export class Server {
  private client: LanguageClient | undefined;
  private lastRestart = Promise.resolve();

  /**
   * @param directory the current directory of the server. It must not be part of a workspace, because Python and uv read files from it.
   */
  constructor(
    private readonly directory: string,
    private readonly log: LogOutputChannel,
  ) {}

  /** Start the server, or stop and start it. Calls at the same time wait for each other. */
  restart(): Promise<void> {
    this.lastRestart = this.lastRestart.then(async () => {
      await this.stop();
      await this.start();
    });
    return this.lastRestart;
  }

  async stop(): Promise<void> {
    const client = this.client;
    this.client = undefined;
    try {
      await client?.dispose(STOP_TIMEOUT_MILLISECONDS);
    } catch (error) {
      this.log.warn(`The server did not end in order: ${error}`);
    }
  }

  private async start(): Promise<void> {
    const folder = workspace.workspaceFolders?.[0]?.uri;
    const settings = workspace.getConfiguration("apflint");
    const setting = replaceVariables(settings.get("path", "").trim(), folder?.fsPath, os.homedir());
    const command = findExecutable({
      setting,
      interpreter: await findInterpreter(folder, this.log),
      searchPath: process.env.PATH ?? "",
    });
    // No `await` for messages: they may stay open until somebody closes them.
    if (command === undefined) {
      void this.reportMissing(setting);
      return;
    }
    const prefix = settings.get<string[]>("arguments", []);
    // For a program that is not apflint, the client would show a message for each notification that it cannot send.
    try {
      this.log.info(`Running ${[command, ...prefix].join(" ")}`);
      this.log.info(await readVersion([command, ...prefix], this.directory, VERSION_TIMEOUT_MILLISECONDS));
    } catch (error) {
      void this.reportFailure(error as Error);
      return;
    }
    this.client = this.createClient(command, [...prefix, "lsp"]);
    try {
      await this.client.start();
    } catch (error) {
      this.log.error(`${error}`); // the client has shown a message
    }
  }

  private createClient(command: string, args: string[]): LanguageClient {
    const languages = ["yaml", "json"];
    return new LanguageClient(
      "apflint",
      { command, args, options: { cwd: this.directory } },
      {
        documentSelector: ["file", "untitled"].flatMap((scheme) => languages.map((language) => ({ scheme, language }))),
        outputChannel: this.log,
      },
    );
  }

  private async reportMissing(setting: string): Promise<void> {
    const message =
      setting === ""
        ? "apflint is neither in the selected Python environment nor in the PATH."
        : `apflint.path is not the absolute path or name of a program: ${setting}`;
    this.log.error(message);
    const [install, openSettings] = ["How to Install", "Open Settings"];
    const choice = await window.showErrorMessage(message, install, openSettings);
    if (choice === install) {
      await env.openExternal(Uri.parse(PAGE));
    } else if (choice === openSettings) {
      await commands.executeCommand("workbench.action.openSettings", "apflint.path");
    }
  }

  private async reportFailure({ message, cause }: Error): Promise<void> {
    this.log.error(`${message}\n${cause}`);
    const showLog = "Show Log";
    const choice = await window.showErrorMessage(message, showLog);
    if (choice === showLog) {
      this.log.show();
    }
  }
}

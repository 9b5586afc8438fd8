import { execFile } from "node:child_process";
import { promisify } from "node:util";

/**
 * Return what `apflint --version` prints.
 *
 * @param command the program and the arguments before `--version`.
 * @param directory the current directory of the program.
 * @throws Error with a sentence for the user if the program is not apflint, fails, or does not end in time. Its cause is for the log.
 */
export async function readVersion(command: [string, ...string[]], directory: string, timeoutMilliseconds: number): Promise<string> {
  const [file, ...prefix] = command;
  const line = [...command, "--version"].join(" ");
  // Unlike the option `timeout`, a signal does not wait for a program that ignores SIGTERM.
  const signal = AbortSignal.timeout(timeoutMilliseconds);
  let printed: string;
  try {
    printed = (await promisify(execFile)(file, [...prefix, "--version"], { cwd: directory, signal })).stdout;
  } catch (cause) {
    const seconds = timeoutMilliseconds / 1000;
    const message = signal.aborted ? `This program did not end within ${seconds} seconds` : "This program is not apflint, or fails";
    throw new Error(`${message}: ${line}`, { cause });
  }
  if (!printed.startsWith("apflint ")) {
    throw new Error(`This program is not apflint, or fails: ${line}`, { cause: `It printed: ${printed}` });
  }
  return printed.trim();
}

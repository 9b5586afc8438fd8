import * as fs from "node:fs";
import * as path from "node:path";

/** Where to look for the program, in this order. */
export interface Places {
  /** The setting `apflint.path`. If it is not empty, it is the only place. */
  setting: string;
  /** The Python interpreter of the selected environment. */
  interpreter: string | undefined;
  /** The environment variable `PATH`. */
  searchPath: string;
}

/** Return the absolute path of the program to run, or undefined if there is none. */
export function findExecutable(places: Places): string | undefined {
  if (places.setting !== "") {
    return path.basename(places.setting) === places.setting
      ? findInDirectories(places.setting, listDirectories(places.searchPath))
      : firstExecutable([places.setting]);
  }
  const directories = places.interpreter === undefined ? [] : listScriptDirectories(places.interpreter);
  return findInDirectories("apflint", [...directories, ...listDirectories(places.searchPath)]);
}

/** Replace variables of VS Code, which replaces them in tasks but not in settings of extensions. */
export function replaceVariables(setting: string, workspaceFolder: string | undefined, userHome: string): string {
  return setting
    .replaceAll("${userHome}", () => userHome)
    .replaceAll("${workspaceFolder}", (variable) => workspaceFolder ?? variable);
}

function findInDirectories(name: string, directories: string[]): string | undefined {
  const fileName = process.platform === "win32" && path.extname(name) === "" ? `${name}.exe` : name;
  return firstExecutable(directories.map((directory) => path.join(directory, fileName)));
}

/** List the directories in which `pip install` puts programs. On Windows, an environment may have its interpreter one level above. */
function listScriptDirectories(interpreter: string): string[] {
  const directory = path.dirname(interpreter);
  return process.platform === "win32" ? [directory, path.join(directory, "Scripts")] : [directory];
}

function listDirectories(searchPath: string): string[] {
  return searchPath.split(path.delimiter);
}

/** Skip relative paths: a program in the current directory may be part of a workspace that the user does not trust. */
function firstExecutable(files: string[]): string | undefined {
  return files.find((file) => path.isAbsolute(file) && isExecutable(file));
}

function isExecutable(file: string): boolean {
  try {
    fs.accessSync(file, fs.constants.X_OK);
    return fs.statSync(file).isFile();
  } catch {
    return false;
  }
}

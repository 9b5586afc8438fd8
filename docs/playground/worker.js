// Runs apflint on Pyodide, apart from the page, so that the page stays responsive.
import { loadPyodide } from "./pyodide/pyodide.mjs";

const here = (path) => new URL(path, import.meta.url).href;

async function download(path) {
  const response = await fetch(here(path));
  if (!response.ok) throw new Error(`${path}: HTTP status ${response.status}`);
  return response.arrayBuffer();
}

async function boot() {
  const [pyodide, packages, runner] = await Promise.all([
    loadPyodide({ indexURL: here("pyodide/") }),
    download("packages.zip"),
    download("runner.py"),
  ]);
  pyodide.unpackArchive(packages, "zip", { extractDir: pyodide.runPython("import site; site.getsitepackages()[0]") });
  pyodide.FS.writeFile("runner.py", new Uint8Array(runner));
  return pyodide.pyimport("runner");
}

const ready = boot();

ready.then(
  (runner) => postMessage({ type: "ready", ...JSON.parse(runner.describe()) }),
  (error) => postMessage({ type: "failed", message: String(error.message ?? error) }),
);

onmessage = async ({ data }) => {
  const runner = await ready;
  try {
    const json = data.command === "about" ? runner.describe_packages() : runner.run_job(JSON.stringify(data));
    postMessage({ type: "result", ...JSON.parse(json) });
  } catch (error) {
    // Python raises SystemExit or runs out of memory or stack. Its state may be damaged: the page starts a new worker.
    postMessage({ type: "failed", message: String(error.message ?? error) });
  }
};

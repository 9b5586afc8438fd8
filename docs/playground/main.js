// The page: reads its controls, asks apflint, and shows the answers.
import { Editor } from "./editor.js";
import { Engine } from "./engine.js";
import { decodeState, encodeState, MAX_LINK_CHARACTERS, MAX_TEXT_CHARACTERS } from "./share.js";
import { renderTerminal, splitFindings, stripEscapes } from "./terminal.js";

const TYPING_DELAY = 300; // milliseconds after the last key until a check starts
const STOP_DELAY = 3_000; // milliseconds until the button to stop a job appears
const [MIN_COLUMNS, MAX_COLUMNS] = [40, 100]; // the limits of apflint for prose
const VIEWS = ["check", "graph", "explain"];

const $ = (id) => document.getElementById(id);
const outputOf = (view) => document.querySelector(`#${view} .output`);
const goTo = (line, column) => editor.select(line, column);
const editor = new Editor($("manifests"), $("gutter"), () => {
  $("examples").value = "";
  showNotice("");
  isStopped = false;
  outdate();
  later(runView);
});
const engine = new Engine({ ready: showReady, result: showResult, failed: showFailure, busy: showBusy });

let view = "check";
let columns = MAX_COLUMNS;
let requested = ""; // release in a shared link, until the menu of releases is known
let isStopped = false; // whether the user stopped a job, which must not start again on its own
let revision = 0; // counts the changes that results depend on
let typing, stopping;

function later(action) {
  clearTimeout(typing);
  typing = setTimeout(action, TYPING_DELAY);
}

// Results of jobs that have started are not shown any more. Until there are new ones, the page shows the old ones as busy.
function outdate() {
  revision += 1;
  setBusy(new Set(["check", view]), true);
}

function setBusy(views, isBusy) {
  for (const name of views) outputOf(name).setAttribute("aria-busy", String(isBusy));
}

// Runs the command of the visible tab. Findings are always updated, because the editor marks their lines.
function runView() {
  clearTimeout(typing);
  outdate();
  const manifests = editor.text;
  if (manifests.length > MAX_TEXT_CHARACTERS) {
    const limit = MAX_TEXT_CHARACTERS.toLocaleString("en");
    for (const name of new Set(["check", view])) {
      showMessage(name, `The playground checks at most ${limit} characters. Use apflint on the command line.`);
    }
    return;
  }
  columns = measureColumns();
  const job = makeJob();
  engine.run({ ...job, command: "check" });
  if (view === "explain" && !job.request) showMessage("explain", "Enter a request, as in: list pods -n team-a --as alice");
  else if (view !== "check") engine.run({ ...job, command: view });
}

function makeJob() {
  const [kubernetes, request] = [$("kubernetes").value, $("request").value.trim()];
  return { revision, manifests: editor.text, kubernetes, request, columns };
}

function showResult(job, result) {
  if (job.command === "about") return showAbout(result);
  if (job.revision !== revision) return;
  if (job.command === "fix") return showFixed(result);
  const { output, notes, seconds, exitCode } = result;
  const target = outputOf(job.command);
  if (job.command === "check") {
    const findings = splitFindings(output);
    target.replaceChildren(makeList(findings));
    editor.mark(findings);
    $("fix").hidden = !result.fixes;
    $("fix").disabled = false;
    $("fix").textContent = result.fixes === 1 ? "Apply 1 safe fix" : `Apply ${result.fixes} safe fixes`;
    $("status").textContent = `${stripEscapes(notes).trim().split("\n").at(0)} (${seconds.toFixed(2)} s)`;
  } else if (job.command === "graph" && exitCode === 0) {
    target.replaceChildren(...makePicture(output));
  } else {
    target.replaceChildren(makeOutput(output));
  }
  target.append(makeOutput(notes.trim(), "notes"));
  Object.assign(target.dataset, { columns: job.columns, exitCode });
  setBusy([job.command], false);
}

// Shows the fixed manifests in the editor, and checks them.
function showFixed({ manifests, notes }) {
  editor.replace(manifests);
  runView();
  $("fix").disabled = false;
  showNotice(stripEscapes(notes).trim().split("\n").at(-1).replace(/^apflint: /, ""));
}

function makeList(findings) {
  const list = makeElement("ol", "", "findings");
  for (const { text, severity } of findings) {
    const item = makeElement("li", "", severity);
    item.append(makeOutput(text));
    list.append(item);
  }
  return list;
}

// As an image, the SVG can neither run scripts nor load anything, whatever the manifests put into its text.
function makePicture(svg) {
  const image = makeElement("img");
  const url = URL.createObjectURL(new Blob([svg], { type: "image/svg+xml" }));
  URL.revokeObjectURL(outputOf("graph").querySelector("a")?.href);
  image.src = url;
  image.alt = "FlowSchemas in matching order, with arrows to their priority levels. The other tabs have the details as text.";
  const link = makeElement("a", "Download as SVG");
  Object.assign(link, { href: url, download: "apf.svg" });
  const size = makeElement("button", "Actual size");
  size.type = "button";
  size.setAttribute("aria-pressed", "false");
  size.onclick = () => size.setAttribute("aria-pressed", String(image.classList.toggle("actual")));
  const bar = makeElement("p", "", "actions");
  bar.append(size, link);
  return [bar, image];
}

function makeOutput(text, className = "") {
  const pre = makeElement("pre", "", className);
  pre.append(renderTerminal(text, goTo));
  return pre;
}

function makeElement(name, text = "", className = "") {
  const element = document.createElement(name);
  element.textContent = text;
  element.className = className;
  return element;
}

function showMessage(target, text) {
  outputOf(target).replaceChildren(makeElement("p", text));
  if (target === "check") editor.mark([]);
  setBusy([target], false);
}

function showReady({ apflint, releases }) {
  const menu = $("kubernetes");
  const wanted = requested || menu.value;
  menu.replaceChildren(...releases.map((name) => new Option(name, name)));
  menu.value = releases.includes(wanted) ? wanted : releases[0];
  menu.disabled = false;
  requested = "";
  $("status").textContent = isStopped ? "Stopped. Change the manifests to check them." : `apflint ${apflint} is ready.`;
  if (isStopped) setBusy(VIEWS, false);
  else runView();
  isStopped = false;
  engine.run({ command: "about" });
}

function showAbout({ python, packages, missing }) {
  const items = (texts) => texts.map((text) => makeElement("li", text));
  const names = Object.keys(missing);
  $("missing").replaceChildren(...items(names.map((name) => `${name} is missing. ${missing[name]}`)));
  if (!names.length) $("missing").replaceChildren(...items(["None: all packages are the same."]));
  $("packages").replaceChildren(...items([`Python ${python}, on Pyodide (MPL-2.0)`, ...packages]));
}

function showFailure(message) {
  showBusy(null);
  setBusy(VIEWS, false);
  $("status").textContent = `apflint stopped: ${message.trim().split("\n").at(-1)}`;
  $("stop").textContent = "Start again";
  $("stop").hidden = false;
}

function showBusy(command) {
  clearTimeout(stopping);
  $("stop").hidden = true;
  $("stop").textContent = "Stop";
  document.body.dataset.busy = command ?? "";
  if (command === "start") $("status").textContent = "Starting Python in this browser. The first visit downloads up to 16 MB.";
  else if (command) stopping = setTimeout(() => ($("stop").hidden = false), STOP_DELAY);
}

function showView(name, { focus = false } = {}) {
  view = name;
  for (const other of VIEWS) {
    const tab = $(`tab-${other}`);
    tab.setAttribute("aria-selected", String(other === name));
    tab.tabIndex = other === name ? 0 : -1;
    $(other).hidden = other !== name;
  }
  if (focus) $(`tab-${name}`).focus();
}

// Width of the results in characters of the monospaced font, between the limits of apflint.
function measureColumns() {
  const probe = makeElement("pre", "0".repeat(100), "probe");
  outputOf(view).append(probe);
  const fitting = Math.floor((outputOf(view).clientWidth / probe.getBoundingClientRect().width) * 100) - 2;
  probe.remove();
  return Math.min(MAX_COLUMNS, Math.max(MIN_COLUMNS, fitting));
}

async function share() {
  const state = { manifests: editor.text, kubernetes: $("kubernetes").value, request: $("request").value, view };
  const fragment = await encodeState(state);
  const link = new URL(fragment, location.href).href;
  if (link.length > MAX_LINK_CHARACTERS) {
    const [length, limit] = [link.length, MAX_LINK_CHARACTERS].map((count) => count.toLocaleString("en"));
    $("status").textContent = `The link would have ${length} characters, more than ${limit}. Share fewer manifests.`;
    return;
  }
  history.replaceState(null, "", fragment);
  const warning = "Everybody with the link can read the manifests.";
  try {
    await navigator.clipboard.writeText(link);
    $("status").textContent = `Link copied. ${warning}`;
  } catch {
    $("status").textContent = `The link is in the address bar. ${warning}`;
  }
}

function showNotice(text) {
  $("notice").textContent = text;
  $("notice").hidden = !text;
}

function load({ manifests, kubernetes = "", request, view: wanted = view }) {
  showNotice("");
  for (const name of VIEWS) outputOf(name).replaceChildren(); // results of other manifests
  editor.text = manifests;
  $("request").value = request;
  requested = kubernetes;
  if ([...$("kubernetes").options].some((option) => option.value === kubernetes)) $("kubernetes").value = kubernetes;
  showView(VIEWS.includes(wanted) ? wanted : "check");
  runView();
}

// Loads the state of a shared link, or the first example.
async function loadLink(examples) {
  try {
    const state = await decodeState(location.hash);
    if (state) load(state);
    else if (!editor.text) {
      $("examples").value = "0";
      load(examples[0]);
    }
  } catch (error) {
    showNotice(error.message);
  }
}

async function start() {
  showBusy("start");
  $("link-limit").textContent = MAX_LINK_CHARACTERS.toLocaleString("en");
  const examples = await (await fetch("examples.json")).json();
  $("examples").append(...examples.map(({ title }, index) => new Option(title, index)));
  $("examples").onchange = ({ target }) => target.value && load(examples[target.value]);
  $("kubernetes").onchange = runView;
  $("share").onclick = share;
  $("stop").onclick = () => {
    isStopped = document.body.dataset.busy !== "";
    engine.restart();
    showBusy("start");
  };
  $("about-open").onclick = () => $("about").showModal();
  $("fix").onclick = () => {
    $("fix").disabled = true;
    engine.run({ ...makeJob(), command: "fix" });
  };
  $("ask").onsubmit = (event) => {
    event.preventDefault();
    runView();
  };
  for (const name of VIEWS) {
    $(`tab-${name}`).onclick = () => {
      showView(name);
      runView();
    };
    $(`tab-${name}`).onkeydown = ({ key }) => {
      const step = { ArrowRight: 1, ArrowLeft: VIEWS.length - 1 }[key];
      if (!step) return;
      showView(VIEWS[(VIEWS.indexOf(name) + step) % VIEWS.length], { focus: true });
      runView();
    };
  }
  addEventListener("hashchange", () => loadLink(examples));
  addEventListener("resize", () => measureColumns() !== columns && later(runView));
  await loadLink(examples);
}

start().catch((error) => showFailure(error.message));

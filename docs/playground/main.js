// The page: reads its controls, asks apflint, and shows the answers.
import { Editor } from "./editor.js";
import { Engine } from "./engine.js";
import { makeCharts, makeElement, makeGraph, releasePictures } from "./pictures.js";
import { decodeState, encodeState, MAX_LINK_CHARACTERS, MAX_TEXT_CHARACTERS } from "./share.js";
import { renderTerminal, splitFindings, stripEscapes } from "./terminal.js";

const TYPING_DELAY = 300; // milliseconds after the last key until a check starts
const STOP_DELAY = 3_000; // milliseconds until the button to stop a job appears
const MAX_SIMULATION_SECONDS = 20; // one run; the charts are drawn in a second one
const [MIN_COLUMNS, MAX_COLUMNS] = [40, 100]; // the limits of apflint for prose
const VIEWS = ["check", "graph", "explain", "limits", "diff", "simulate"];
const TEXTS = { diff: "old", simulate: "load" }; // the texts of views, in addition to the manifests

const $ = (id) => document.getElementById(id);
const outputOf = (view) => document.querySelector(`#${view} .output`);
const goTo = (name, line, column) => {
  if (name in TEXTS) showView(Object.keys(TEXTS).find((view) => TEXTS[view] === name));
  editors[name].select(line, column);
};
const editors = Object.fromEntries(
  ["manifests", "old", "load"].map((name) => [name, new Editor($(name), $(name).previousElementSibling, onEdit)]),
);
const engine = new Engine({ ready: showReady, result: showResult, expired: showExpired, failed: showFailure, busy: showBusy });

let view = "check";
let columns = MAX_COLUMNS;
let requested = ""; // release in a shared link, until the menu of releases is known
let exampleLoad = ""; // for links without a load
let whenReady = runView; // a job that was stopped must not start again on its own
let revision = 0; // counts the changes that results depend on
let typing, stopping;

function onEdit() {
  $("examples").value = "";
  showNotice("");
  whenReady = runTyped;
  showChanged("The texts have changed. Simulate them again.");
  outdate({ isTyped: true });
  later(runTyped);
}

function later(action) {
  clearTimeout(typing);
  typing = setTimeout(() => action(), TYPING_DELAY);
}

// Results of jobs that have started are not shown any more. Until there are new ones, the page shows the old ones as busy.
function outdate({ isTyped = false } = {}) {
  revision += 1;
  setBusy(VIEWS, false);
  setBusy(isTyped && view === "simulate" ? ["check"] : ["check", view], true);
}

function setBusy(views, isBusy) {
  for (const name of views) outputOf(name).setAttribute("aria-busy", String(isBusy));
}

// Runs the command of the visible tab. Findings are always updated, because the editor marks their lines.
function runView({ isTyped = false } = {}) {
  clearTimeout(typing);
  if (!isTyped) whenReady = runView;
  outdate({ isTyped });
  columns = measureColumns();
  const job = makeJob();
  const isTooLong = (name) => name in editors && editors[name].text.length > MAX_TEXT_CHARACTERS;
  const limit = `The playground reads at most ${MAX_TEXT_CHARACTERS.toLocaleString("en")} characters. Use apflint on the command line.`;
  if (isTooLong("manifests")) {
    for (const name of new Set(["check", view])) showMessage(name, limit);
    return;
  }
  engine.run({ ...job, command: "check" });
  if (isTooLong(TEXTS[view])) showMessage(view, limit);
  else if (view === "explain" && !job.request) showMessage("explain", "Enter a request, as in: list pods -n team-a --as alice");
  else if (view === "simulate" && !isTyped) simulate(job);
  else if (view !== "check" && view !== "simulate") engine.run({ ...job, command: view });
}

// While somebody types, a load may have too many requests for a moment. So edits do not start simulations.
function runTyped() {
  runView({ isTyped: true });
}

function simulate(job) {
  showChanged("");
  if (job.load.trim()) engine.run({ ...job, command: "simulate", seconds: MAX_SIMULATION_SECONDS });
  else showMessage("simulate", "Enter a load, or choose an example.");
}

function showChanged(text) {
  $("changed").textContent = text;
}

function makeJob() {
  const [kubernetes, seats, request] = ["kubernetes", "seats", "request"].map((id) => $(id).value.trim());
  const texts = Object.fromEntries(Object.entries(editors).map(([name, editor]) => [name, editor.text]));
  return { ...texts, revision, kubernetes, seats, request, columns };
}

function showResult(job, result) {
  if (job.command === "about") return showAbout(result);
  if (job.revision !== revision) return;
  if (job.command === "fix") return showFixed(result);
  if (job.command === "charts") return showCharts(result);
  const { output, notes, seconds, exitCode } = result;
  const target = outputOf(job.command);
  releasePictures(target);
  if (job.command === "check") {
    const findings = splitFindings(output);
    target.replaceChildren(makeList(findings));
    editors.manifests.mark(findings);
    $("fix").hidden = !result.fixes;
    $("fix").disabled = false;
    $("fix").textContent = result.fixes === 1 ? "Apply 1 safe fix" : `Apply ${result.fixes} safe fixes`;
    $("status").textContent = `${stripEscapes(notes).trim().split("\n").at(0)} (${seconds.toFixed(2)} s)`;
  } else if (job.command === "graph" && exitCode === 0) {
    target.replaceChildren(...makeGraph(output, target));
  } else {
    target.replaceChildren(makeOutput(output));
  }
  target.append(makeOutput(notes.trim(), "notes"));
  Object.assign(target.dataset, { columns: job.columns, exitCode });
  if (job.command === "simulate" && exitCode === 0) engine.run({ ...job, command: "charts" });
  else setBusy([job.command], false);
}

// The charts are part of the HTML report of the same simulation.
function showCharts({ output, notes, exitCode }) {
  const target = outputOf("simulate");
  target.append(exitCode === 0 ? makeCharts(output, target) : makeOutput(notes.trim(), "notes"));
  setBusy(["simulate"], false);
}

// A simulation took too long. The manifests are checked again, because the new worker has lost their job.
function showExpired({ command, seconds }) {
  whenReady = runTyped;
  showBusy("start");
  const advice = "Shorten the duration, lower rates and counts, or run apflint simulate on the command line.";
  const sentence = `${command === "charts" ? "There are no charts" : "Stopped"}: the simulation took more than ${seconds} seconds.`;
  if (command !== "charts") outputOf("simulate").replaceChildren();
  outputOf("simulate").append(makeElement("p", `${sentence} ${advice}`));
  setBusy(["simulate"], false);
}

// Shows the fixed manifests in the editor, and checks them.
function showFixed({ manifests, notes }) {
  editors.manifests.replace(manifests);
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

function makeOutput(text, className = "") {
  const pre = makeElement("pre", "", className);
  pre.append(renderTerminal(text, goTo));
  return pre;
}

function showMessage(target, text) {
  releasePictures(outputOf(target));
  outputOf(target).replaceChildren(makeElement("p", text));
  if (target === "check") editors.manifests.mark([]);
  setBusy([target], false);
}

function showReady({ apflint, releases }) {
  const menu = $("kubernetes");
  const wanted = requested || menu.value;
  menu.replaceChildren(...releases.map((name) => new Option(name, name)));
  menu.value = releases.includes(wanted) ? wanted : releases[0];
  menu.disabled = false;
  requested = "";
  $("status").textContent = `apflint ${apflint} is ready.`;
  whenReady();
  whenReady = runView;
  engine.run({ command: "about" });
}

// Ends the running job. The new worker does not start it again.
function stop() {
  const { busy } = document.body.dataset;
  const isSimulating = ["simulate", "charts"].includes(busy);
  whenReady = isSimulating ? runTyped : busy ? showStopped : runView;
  engine.restart();
  showBusy("start");
  if (isSimulating) showMessage("simulate", "You stopped the simulation.");
}

function showStopped() {
  $("status").textContent = "Stopped. Change the manifests to check them.";
  setBusy(VIEWS, false);
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
  const { manifests, old, load, kubernetes, seats } = makeJob();
  const state = { manifests, kubernetes, request: $("request").value, view, seats, old, load };
  const fragment = await encodeState(state);
  const link = new URL(fragment, location.href).href;
  if (link.length > MAX_LINK_CHARACTERS) {
    const [length, limit] = [link.length, MAX_LINK_CHARACTERS].map((count) => count.toLocaleString("en"));
    $("status").textContent = `The link would have ${length} characters, more than ${limit}. Shorten the texts, or send them as files.`;
    return;
  }
  history.replaceState(null, "", fragment);
  const warning = "Everybody with the link can read the texts.";
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

function showState({ manifests, kubernetes = "", request, view: wanted = view, seats = "", old = "", load = exampleLoad }) {
  showNotice("");
  showChanged("");
  for (const name of VIEWS) outputOf(name).replaceChildren(); // results of other manifests
  for (const [name, text] of Object.entries({ manifests, old, load })) editors[name].text = text;
  $("request").value = request;
  $("seats").value = seats;
  requested = kubernetes;
  if ([...$("kubernetes").options].some((option) => option.value === kubernetes)) $("kubernetes").value = kubernetes;
  showView(VIEWS.includes(wanted) ? wanted : "check");
  runView();
}

// Loads the state of a shared link, or the first example.
async function loadLink(examples) {
  try {
    const state = await decodeState(location.hash);
    if (state) showState(state);
    else if (!editors.manifests.text) {
      $("examples").value = "0";
      showState(examples[0]);
    }
  } catch (error) {
    showNotice(error.message);
  }
}

async function start() {
  showBusy("start");
  $("simulation-limit").textContent = MAX_SIMULATION_SECONDS;
  $("link-limit").textContent = MAX_LINK_CHARACTERS.toLocaleString("en");
  const examples = await (await fetch("examples.json")).json();
  exampleLoad = examples[0].load;
  $("examples").append(...examples.map(({ title }, index) => new Option(title, index)));
  $("examples").onchange = ({ target }) => target.value && showState(examples[target.value]);
  for (const id of ["kubernetes", "seats"]) $(id).onchange = () => runView();
  $("share").onclick = share;
  $("stop").onclick = stop;
  $("about-open").onclick = () => $("about").showModal();
  $("fix").onclick = () => {
    $("fix").disabled = true;
    engine.run({ ...makeJob(), command: "fix" });
  };
  $("run").onclick = () => runView();
  $("load").onkeydown = (event) => event.key === "Enter" && (event.ctrlKey || event.metaKey) && runView();
  $("copy").onclick = () => {
    editors.old.replace(editors.manifests.text);
    runView();
  };
  $("swap").onclick = () => {
    const { old, manifests } = makeJob();
    editors.old.replace(manifests);
    editors.manifests.replace(old);
    runView();
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
      const at = VIEWS.indexOf(name);
      const next = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: -1 }[key];
      if (next === undefined) return;
      showView(VIEWS.at(next % VIEWS.length), { focus: true });
      runView();
    };
  }
  addEventListener("hashchange", () => loadLink(examples));
  addEventListener("resize", () => view !== "simulate" && measureColumns() !== columns && later(runView));
  await loadLink(examples);
}

start().catch((error) => showFailure(error.message));

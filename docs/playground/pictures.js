// Pictures of apflint. They are images, because an image of an SVG runs no scripts and loads nothing, whatever names its text has.

const SVG = "http://www.w3.org/2000/svg";
const URLS = new WeakMap(); // URLs of the files of each output

export function makeElement(name, text = "", className = "") {
  const element = document.createElement(name);
  element.textContent = text;
  element.className = className;
  return element;
}

// Returns the graph, below buttons for its size and its file.
export function makeGraph(svg, output) {
  const url = makeUrl(svg, "image/svg+xml", output);
  const image = makeImage(url, "FlowSchemas in matching order, with arrows to their priority levels. The other tabs have the details as text.");
  const size = makeElement("button", "Actual size");
  size.type = "button";
  size.setAttribute("aria-pressed", "false");
  size.onclick = () => size.setAttribute("aria-pressed", String(image.classList.toggle("actual")));
  const bar = makeElement("p", "", "actions");
  bar.append(size, makeDownload(url, "apf.svg", "Download as SVG"));
  return [bar, image];
}

// Returns the charts of an HTML report with their headings and legends, below a link to the report.
export function makeCharts(report, output) {
  // Unlike a page, the result of a parser runs no scripts and loads nothing. Only its text and its charts are used.
  const [style, css] = /<style>([^<]*)<\/style>/.exec(report);
  const parsed = new DOMParser().parseFromString(report.replace(style, ""), "text/html");
  const charts = makeElement("div", "", "charts");
  const bar = makeElement("p", "", "actions");
  bar.append(makeDownload(makeUrl(report, "text/html", output), "simulation.html", "Download the report"));
  charts.append(bar);
  for (const part of parsed.querySelectorAll("h2, h3, .drawing > svg, .legend")) {
    if (part.matches("svg")) {
      const drawing = makeElement("div", "", "drawing");
      const text = [...part.children].filter((child) => /^(title|desc)$/.test(child.localName)).map((child) => child.textContent);
      drawing.append(drawAsImage(part, css, `${text.join(". ")}. The report has the numbers as tables.`, output));
      charts.append(drawing);
    } else if (part.matches(".legend")) charts.append(makeLegend(part, css, output));
    else charts.append(makeElement(part.localName, part.textContent));
  }
  return charts;
}

// Frees the files of the pictures in an output, before it shows something else.
export function releasePictures(output) {
  for (const url of URLS.get(output) ?? []) URL.revokeObjectURL(url);
  URLS.delete(output);
}

function makeLegend(legend, css, output) {
  const entries = [...legend.querySelectorAll(".key")].map((key) => {
    const [kind] = [...key.classList].filter((name) => name !== "key");
    const svg = document.createElementNS(SVG, "svg");
    const square = document.createElementNS(SVG, "rect");
    for (const [name, value] of Object.entries({ class: "chart", width: 12, height: 12 })) svg.setAttribute(name, value);
    for (const [name, value] of Object.entries({ class: kind, width: 12, height: 12 })) square.setAttribute(name, value);
    svg.append(square);
    const entry = makeElement("span");
    entry.append(drawAsImage(svg, css, "", output), key.parentElement.textContent);
    return entry;
  });
  const paragraph = makeElement("p", "", "legend");
  paragraph.append(...entries);
  return paragraph;
}

// The styles are those of the page of the report, in which a chart fills the width. They become part of the text, because the policy
// of this page forbids them in its elements.
function drawAsImage(svg, css, alt, output) {
  const [width, height] = ["width", "height"].map((name) => svg.getAttribute(name));
  const style = `<style>${css}svg.chart{width:${width}px;height:${height}px;min-width:0;max-width:none}</style>`;
  const text = new XMLSerializer().serializeToString(svg).replace(/>/, () => `>${style.replaceAll("&", "&amp;")}`);
  const image = makeImage(makeUrl(text, "image/svg+xml", output), alt);
  Object.assign(image, { width, height });
  return image;
}

function makeImage(url, alt) {
  const image = makeElement("img");
  Object.assign(image, { src: url, alt });
  return image;
}

function makeDownload(url, name, text) {
  const link = makeElement("a", text);
  Object.assign(link, { href: url, download: name });
  return link;
}

function makeUrl(text, type, output) {
  const url = URL.createObjectURL(new Blob([text], { type }));
  URLS.set(output, [...(URLS.get(output) ?? []), url]);
  return url;
}

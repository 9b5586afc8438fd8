// Shows the text that apflint prints for a terminal: colors, links to rules, and places in the manifests.

const STYLES = { 1: "bold", 2: "dim", 31: "red", 32: "green", 33: "yellow", 34: "blue", 36: "cyan" };
const ESCAPE = /\x1b\[([\d;]*)m|\x1b\]8;;([^\x1b]*)\x1b\\/g;
const PLACE = /\b(manifests|old|load)\.yaml:(\d+)(?::(\d+))?/g;

// Returns a fragment for the document. All text becomes text nodes, so that no manifest can add HTML.
export function renderTerminal(text, onPlace) {
  const fragment = document.createDocumentFragment();
  let [styles, link, end] = [[], "", 0];
  const add = (piece) => piece && fragment.append(makeSpan(piece, styles, link, onPlace));
  for (const match of text.matchAll(ESCAPE)) {
    add(text.slice(end, match.index));
    end = match.index + match[0].length;
    if (match[2] !== undefined) link = match[2];
    else if (match[1] === "" || match[1] === "0") styles = [];
    else styles = match[1].split(";").flatMap((code) => STYLES[code] ?? []);
  }
  add(text.slice(end));
  return fragment;
}

export const stripEscapes = (text) => text.replace(ESCAPE, "");

function makeSpan(text, styles, link, onPlace) {
  const isLink = link.startsWith("https://");
  const span = document.createElement(isLink ? "a" : "span");
  span.className = styles.join(" ");
  if (isLink) Object.assign(span, { href: link, target: "_blank", rel: "noopener noreferrer" });
  let end = 0;
  for (const match of isLink ? [] : text.matchAll(PLACE)) {
    const place = document.createElement("button");
    place.type = "button";
    place.className = "place";
    place.textContent = match[0];
    const [, editor, line, column] = match;
    place.title = `Go to line ${line}`;
    place.onclick = () => onPlace(editor, Number(line), Number(column ?? 1));
    span.append(text.slice(end, match.index), place);
    end = match.index + match[0].length;
  }
  span.append(text.slice(end));
  return span;
}

// Splits the output of `check` into its findings, with the line that each one points at.
export function splitFindings(output) {
  return output
    .split(/\n\n/)
    .filter((text) => text.trim())
    .map((text) => {
      const plain = stripEscapes(text);
      const line = /^ *--> manifests\.yaml:(\d+)/m.exec(plain)?.[1];
      return { text, severity: /^\w+/.exec(plain)?.[0] ?? "", line: Number(line) };
    });
}

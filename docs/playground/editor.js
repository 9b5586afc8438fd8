// The editor: a text area with line numbers that mark the lines of findings.

export class Editor {
  #area;
  #gutter;
  #marks = new Map();

  constructor(area, gutter, onChange) {
    this.#area = area;
    this.#gutter = gutter;
    area.addEventListener("input", () => {
      this.#draw(); // marks stay as long as the findings that they belong to
      onChange();
    });
    area.addEventListener("scroll", () => (gutter.scrollTop = area.scrollTop));
    this.#draw();
  }

  get text() {
    return this.#area.value;
  }

  set text(text) {
    this.#area.value = text;
    this.#area.scrollTop = 0;
    this.#marks.clear();
    this.#draw();
  }

  // Replaces the text and keeps the place. The browser can undo the change, unlike one of the property `text`.
  replace(text) {
    const { scrollTop } = this.#area;
    this.#area.focus();
    this.#area.select();
    if (!document.execCommand(text ? "insertText" : "delete", false, text) && this.text !== text) this.text = text;
    this.#area.setSelectionRange(0, 0);
    this.#area.scrollTop = scrollTop;
    this.#draw();
  }

  // Marks the lines of findings. The first finding of a line has the highest severity.
  mark(findings) {
    this.#marks = new Map(findings.toReversed().map(({ line, severity }) => [line, severity]));
    this.#draw();
  }

  // Selects a line from a column to its end. Columns are counted in code points, as apflint does.
  select(line, column) {
    const lines = this.#area.value.split("\n");
    if (line > lines.length) return;
    const before = lines.slice(0, line - 1).reduce((sum, text) => sum + text.length + 1, 0);
    const indent = [...lines[line - 1]].slice(0, column - 1).join("").length;
    this.#area.focus();
    this.#area.setSelectionRange(before + indent, before + lines[line - 1].length);
    const height = this.#area.scrollHeight / lines.length;
    this.#area.scrollTop = Math.max(0, (line - 0.5) * height - this.#area.clientHeight / 2);
    this.#area.scrollLeft = 0;
  }

  // Marked lines become elements. The others are plain text, so that large files stay fast.
  #draw() {
    const count = this.#area.value.split("\n").length;
    const parts = [""];
    for (let line = 1; line <= count; line++) {
      const severity = this.#marks.get(line);
      if (!severity) {
        parts[parts.length - 1] += `${line}\n`;
        continue;
      }
      const number = document.createElement("span");
      number.className = severity;
      number.textContent = line;
      parts.push(number, "");
    }
    this.#gutter.replaceChildren(...parts);
    this.#gutter.scrollTop = this.#area.scrollTop;
  }
}

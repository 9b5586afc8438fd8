// Stores the state of the page in the fragment of its URL. Browsers do not send fragments to servers.

const VERSION = "1";
const FIELDS = ["manifests", "kubernetes", "request", "view"];
const ADDED = ["seats", "old", "load"]; // links from before these fields existed do not have them
export const MAX_LINK_CHARACTERS = 32_000; // browsers accept more, but chats and issue trackers cut longer links
export const MAX_TEXT_CHARACTERS = 1_000_000;
const NOT_VALID = "The link is damaged or incomplete, so its texts cannot be shown. Ask for a new link.";

export async function encodeState(state) {
  const bytes = new TextEncoder().encode(JSON.stringify(state));
  const packed = new Uint8Array(await new Response(pipe(bytes, new CompressionStream("deflate-raw"))).arrayBuffer());
  const binary = Array.from(packed, (byte) => String.fromCharCode(byte)).join("");
  const text = btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
  return `#${VERSION}.${text}`;
}

// Returns the state, or null if the fragment is empty. Throws an Error with a sentence for the user.
export async function decodeState(fragment) {
  if (fragment.length <= 1) return null;
  const [, version, text] = /^#(\d+)\.([\w-]+)$/.exec(fragment) ?? [];
  if (version !== undefined && version !== VERSION) throw new Error("The link is from another version of this page.");
  let state;
  try {
    const packed = Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0));
    state = JSON.parse(await readText(pipe(packed, new DecompressionStream("deflate-raw"))));
  } catch (error) {
    throw error instanceof RangeError ? error : new Error(NOT_VALID);
  }
  const values = (names) => names.map((name) => [name, state?.[name]]);
  const added = values(ADDED).filter(([, value]) => value !== undefined);
  const entries = [...values(FIELDS), ...added];
  if (!entries.every(([, value]) => typeof value === "string")) throw new Error(NOT_VALID);
  return Object.fromEntries(entries);
}

const pipe = (bytes, transform) => new Blob([bytes]).stream().pipeThrough(transform);

// A short link may expand to gigabytes, so the text is measured while it is unpacked.
async function readText(stream) {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  let text = "";
  for (const reader = stream.getReader(); ; ) {
    const { done, value } = await reader.read();
    text += decoder.decode(value, { stream: !done });
    if (text.length > MAX_TEXT_CHARACTERS) {
      await reader.cancel();
      throw new RangeError(`The link has more than ${MAX_TEXT_CHARACTERS.toLocaleString("en")} characters of text.`);
    }
    if (done) return text;
  }
}

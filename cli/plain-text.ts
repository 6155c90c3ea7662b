// Makes foreign text harmless for a terminal: what an agent, a model or a repository wrote must not move the cursor, change
// colours, set titles or answer for the person. Pure. Must not know what the text is about. Source: FF12.

/** C0 but tab and newline, DEL, C1, and the characters that reorder or hide text. */
const UNSAFE =
  // oxlint-disable-next-line no-control-regex -- control characters are what is looked for
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]/g;

const visible = (character: string): string => {
  const code = character.charCodeAt(0);
  if (code < 0x20) return String.fromCharCode(0x2400 + code);
  return code === 0x7f ? '\u2421' : '\ufffd';
};

/**
 * The text with every unsafe character replaced by a visible sign; line ends become `\n`. Works on any piece of a stream
 * by itself, since no sequence survives without its first character.
 */
export const plainText = (text: string): string => text.replaceAll('\r\n', '\n').replace(UNSAFE, visible);

/** The same on one line: tabs and line ends become spaces. At most `limit` characters, an ellipsis included. */
export const plainLine = (text: string, limit = 2_000): string => {
  const line = plainText(text.slice(0, limit * 4))
    .replace(/[\t\n]+/g, ' ')
    .trim();
  return line.length > limit ? `${line.slice(0, limit - 1)}…` : line;
};

/** JSON on one or more lines whose texts hold no raw character that a terminal could act on. */
export const plainJson = (value: unknown, indent?: number): string =>
  (JSON.stringify(value, null, indent) ?? 'null').replace(UNSAFE, (character) =>
    character === '\n' ? character : `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );

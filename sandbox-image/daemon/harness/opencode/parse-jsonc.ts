// JSON with comments and trailing commas, as harness configurations are written. Pure. Must not know what it means.

/** The text as plain JSON: comments become blanks, a comma before a closing bracket goes. Strings stay as they are. */
export const plainJson = (text: string): string => {
  let out = '';
  let at = text.startsWith('\uFEFF') ? 1 : 0;
  const dropComma = (): void => {
    out = out.replace(/,\s*$/, '');
  };
  while (at < text.length) {
    const character = text[at] ?? '';
    const pair = text.slice(at, at + 2);
    if (character === '"') {
      const end = /"(?:[^"\\]|\\[\s\S])*"/y;
      end.lastIndex = at;
      const found = end.exec(text)?.[0] ?? text.slice(at);
      out += found;
      at += found.length;
    } else if (pair === '//') {
      const end = text.indexOf('\n', at);
      at = end === -1 ? text.length : end;
    } else if (pair === '/*') {
      const end = text.indexOf('*/', at + 2);
      out += ' ';
      at = end === -1 ? text.length : end + 2;
    } else {
      if (character === '}' || character === ']') dropComma();
      out += character;
      at += 1;
    }
  }
  return out;
};

/** The value of a text; undefined when it is none. */
export const parseJsonc = (text: string): unknown => {
  try {
    return JSON.parse(plainJson(text));
  } catch {
    return undefined;
  }
};

// Cuts texts by their size in bytes. Must not know what the texts are.

/** The head of a text, at most `maxBytes` of UTF-8; a character that would be cut in two is left out. */
export const headOfBytes = (text: string, maxBytes: number): string => {
  const bytes = Buffer.from(text, 'utf8');
  if (bytes.length <= maxBytes) return text;
  let end = maxBytes;
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end -= 1;
  return bytes.subarray(0, end).toString('utf8');
};

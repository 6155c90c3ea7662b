// Reads an answer of the web as text, up to a size and within a time. Must not know what is asked for.
import { BeeuniError, ForbiddenError, UnavailableError } from '#base/errors.ts';

/** Longest time for one address, head and body together. Units: milliseconds. */
export const WEB_LIMIT_MS = 20_000;

/** An answer as text. `isCut`: the body is longer than what was read. */
export type TextAnswer = Readonly<{ status: number; headers: Headers; text: string; isCut: boolean }>;

const causeOf = (error: unknown): BeeuniError | undefined => {
  for (let at = error, depth = 0; at instanceof Error && depth < 8; at = at.cause, depth += 1) {
    if (at instanceof BeeuniError) return at;
  }
  return undefined;
};

/** The error for a caller: ours if there is one in the chain, else that the web failed. `who` begins the message. */
export const webError = (error: unknown, who: string, limit: AbortSignal): Error => {
  const own = causeOf(error);
  if (own instanceof ForbiddenError) {
    return new ForbiddenError('address_not_allowed', `${who} is at an address that may not be connected to`, {
      cause: error,
    });
  }
  if (own !== undefined) return own;
  const why = limit.aborted ? 'did not answer in time' : 'could not be reached';
  return new UnavailableError('web_failed', `${who} ${why}`, { cause: error });
};

/** Bytes in the character set that the content type names, if it is a known one. */
const decode = (bytes: Uint8Array, contentType: string): string => {
  const charset = /charset\s*=\s*"?([A-Za-z0-9_:.-]{1,40})/i.exec(contentType)?.[1] ?? 'utf-8';
  try {
    return new TextDecoder(charset).decode(bytes);
  } catch {
    return new TextDecoder('utf-8').decode(bytes);
  }
};

/** Reads the body up to `maxBytes`, unpacked; the rest is not waited for. */
export const readText = async (response: Response, maxBytes: number): Promise<TextAnswer> => {
  const parts: Uint8Array[] = [];
  let size = 0;
  const reader = response.body?.getReader();
  for (;;) {
    const read = await reader?.read();
    if (read === undefined || read.done) break;
    parts.push(read.value);
    size += read.value.length;
    if (size > maxBytes) {
      await reader?.cancel().catch(() => {});
      break;
    }
  }
  const bytes = Buffer.concat(parts).subarray(0, maxBytes);
  const text = decode(bytes, response.headers.get('content-type') ?? '');
  return { status: response.status, headers: response.headers, text, isCut: size > maxBytes };
};

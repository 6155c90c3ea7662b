// A `fetch` that reads no more of an answer than a limit: who is asked may be anyone, and answers without end.
// Must not know who is asked or for what.
import { readText } from './send.ts';

/**
 * Gives back a `fetch` whose answers are read whole, up to `limitBytes` of their unpacked body, before anyone gets them: the
 * signal of the call so ends the body too. The body of a refusal is dropped unread. Rejects with RangeError when a body is
 * longer, else as `fetch` does.
 */
export const boundedFetch = (fetch: typeof globalThis.fetch, limitBytes: number): typeof globalThis.fetch => {
  const bounded: typeof globalThis.fetch = async (input, init) => {
    const answer = await fetch(input, init);
    const { status, headers } = answer;
    if (!answer.ok || status === 204 || status === 205) {
      // A body that breaks while it is dropped is no matter of the caller's.
      await answer.body?.cancel().catch(() => undefined);
      return new Response(null, { status, headers: [...headers] });
    }
    return new Response(await readText(answer, limitBytes), { status, headers: [...headers] });
  };
  return bounded;
};

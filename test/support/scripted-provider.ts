// A model provider for tests: the scripted model of the demo, which remembers what it was asked.
// A test drives it by lines `@@…` in the user message (examples/demo/model-script.ts), or by `queue`.
import { type RecordedRequest, type ScriptedModel, startScriptedModel } from '#examples/demo/scripted-model.ts';

/** A running provider. `requests` is every request so far; `nextRequest` waits for one more, 10 s at most. */
export type ScriptedProvider = ScriptedModel &
  Readonly<{ requests: readonly RecordedRequest[]; nextRequest: () => Promise<RecordedRequest> }>;

/** Starts a provider on a free loopback port. `key`, `keys`: the keys of which it demands one. */
export const startScriptedProvider = async (
  options: Readonly<{
    key?: string | undefined;
    keys?: readonly string[] | undefined;
    models?: readonly string[] | undefined;
  }> = {},
): Promise<ScriptedProvider> => {
  const requests: RecordedRequest[] = [];
  const waiting: ((request: RecordedRequest) => void)[] = [];
  const model = await startScriptedModel({
    ...options,
    onRequest: (request) => {
      requests.push(request);
      waiting.shift()?.(request);
    },
  });
  return {
    ...model,
    requests,
    nextRequest: () =>
      new Promise((resolve, reject) => {
        const limit = setTimeout(() => reject(new Error('no request reached the scripted provider in 10 s')), 10_000);
        waiting.push((request) => {
          clearTimeout(limit);
          resolve(request);
        });
      }),
  };
};

// Serves the calls of the thread: questions to humans, command lines, tools. Everything that runs for a thread ends with
// it. Must not know turns. Source: harness-runtimes §3.5, A107, A121.
import { readText, send as sendPlainly } from '#base/http/send.ts';
import type { HarnessHost } from '../contract/adapter.ts';
import type { ExecRequest, FromWorker, ToWorker } from './protocol.ts';
import { type RunningCommand, runCommand } from './run-command.ts';

/** Calls of one thread. */
export type HostCalls = Readonly<{
  /** Serves a message; false when it is none of a call. */
  receive: (message: FromWorker) => boolean;
  /** Ends all that runs. */
  endAll: () => void;
}>;

/** Calls that are answered by `send`. */
export const serveCalls = (host: HarnessHost, send: (message: ToWorker) => void): HostCalls => {
  const running = new Map<number, AbortController>();
  const commands = new Map<number, RunningCommand>();
  let granted: Readonly<Record<string, string>> = {};

  /** What is granted to commands now; the last known set when the relay does not answer. */
  const grantedNow = async (): Promise<Readonly<Record<string, string>>> => {
    try {
      const answer = await sendPlainly(host.relay.environmentUrl, {
        headers: { authorization: `Bearer ${host.relay.token}` },
        signal: AbortSignal.timeout(5_000),
      });
      const text = await readText(answer);
      if (answer.status === 200) granted = JSON.parse(text) as Record<string, string>;
    } catch (error) {
      host.log.warn('the environment of commands could not be read', { err: error });
    }
    return granted;
  };

  const exec = async (id: number, request: ExecRequest, signal: AbortSignal): Promise<void> => {
    const { paths, marker } = host;
    const environment = {
      LANG: 'C.UTF-8',
      TERM: 'dumb',
      ...(await grantedNow()),
      PATH: host.searchPath,
      HOME: paths.home,
      TMPDIR: paths.temporary,
      [marker.name]: marker.value,
    };
    if (signal.aborted) {
      send({ kind: 'answer', id, answer: { kind: 'aborted' } });
      return;
    }
    const command = runCommand(request, environment, (data) => send({ kind: 'output', id, data }));
    commands.set(id, command);
    signal.addEventListener('abort', command.abort, { once: true });
    const answer = await command.done;
    commands.delete(id);
    send({ kind: 'answer', id, answer });
  };

  const serve = async (message: Extract<FromWorker, { kind: 'call' }>, signal: AbortSignal): Promise<void> => {
    const { id } = message;
    if (message.name === 'exec') await exec(id, message.request, signal);
    else if (message.name === 'ask') send({ kind: 'answer', id, answer: await host.ask(message.request, signal) });
    else send({ kind: 'answer', id, answer: await host.tools.call(message.request, signal) });
  };

  return {
    receive: (message) => {
      if (message.kind === 'cancel') running.get(message.id)?.abort();
      else if (message.kind === 'taken') commands.get(message.id)?.taken(message.bytes);
      else if (message.kind === 'call') {
        const controller = new AbortController();
        running.set(message.id, controller);
        serve(message, controller.signal)
          .catch((error: unknown) => host.log.error('a call of the harness broke', { call: message.name, err: error }))
          .finally(() => running.delete(message.id));
      } else return false;
      return true;
    },
    endAll: () => {
      for (const controller of running.values()) controller.abort();
    },
  };
};

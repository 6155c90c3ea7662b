// Passes a watch on line by line and does harm on the way. Must not know how the request got here.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { FaultAct, RecordedCall, Rule } from './fault-rules.ts';

/** One call on its way through the proxy. */
export type Call = Readonly<{
  record: RecordedCall;
  acts: readonly Rule[];
  request: IncomingMessage;
  response: ServerResponse;
  body: Buffer;
}>;

/** A Status as the API server words one. */
export const statusBody = (code: number, reason: string): string =>
  JSON.stringify({
    kind: 'Status',
    apiVersion: 'v1',
    status: 'Failure',
    code,
    reason,
    message: `the fault proxy says ${reason}`,
  });

/** Ends a connection so that the other side sees a reset. */
export const reset = (socket: Socket | null): void => {
  socket?.resetAndDestroy();
};

/** Sends a watch line by line and does what the rules say about it. */
export const relayWatch = (call: Call, answer: IncomingMessage, open: Set<ServerResponse>): void => {
  const { record, acts, response } = call;
  const act = <K extends FaultAct['kind']>(kind: K) => {
    const rule = acts.find((candidate) => candidate.act.kind === kind && !candidate.over);
    return rule === undefined ? undefined : { rule, act: rule.act as Extract<FaultAct, { kind: K }> };
  };
  const past: string[] = [];
  let rest = '';
  let queue = Promise.resolve();
  open.add(response);
  response.on('close', () => {
    open.delete(response);
    answer.destroy();
  });
  const end = () => response.end();

  const pass = async (line: string): Promise<void> => {
    if (response.destroyed || response.writableEnded) return;
    const event = JSON.parse(line) as { type: string; object: { metadata?: { name?: string } } };
    const isReal = event.type !== 'BOOKMARK';
    const due = (afterEvents: number | undefined) => record.events >= (afterEvents ?? 0);
    const hold = act('hold');
    if (hold !== undefined && due(hold.act.afterEvents)) await hold.rule.released;
    const cut = act('truncate');
    if (cut !== undefined && isReal && due(cut.act.afterEvents)) {
      response.write(line.slice(0, Math.ceil(line.length / 2)), () => response.destroy());
      return;
    }
    const resetAct = act('reset');
    if (resetAct !== undefined && isReal && due(resetAct.act.afterEvents)) return reset(response.socket);
    const gone = act('gone');
    if (gone?.act.as === 'event' && isReal && due(gone.act.afterEvents)) {
      response.write(`{"type":"ERROR","object":${statusBody(410, 'Expired')}}\n`);
      return;
    }
    const errorEvent = act('error-event');
    if (errorEvent !== undefined && isReal) {
      const body = statusBody(errorEvent.act.code, 'InternalError');
      response.end(`{"type":"ERROR","object":${body}}\n`);
      return;
    }
    const swallow = act('swallow');
    if (isReal && swallow?.act.event(event.type, event.object.metadata?.name ?? '') === true) return;
    // Written for good, so that a reset afterwards does not take it back.
    await new Promise((written) => response.write(`${line}\n`, written));
    if (!isReal) return;
    record.events += 1;
    if (act('repeat') !== undefined) for (const old of [...past, line]) response.write(`${old}\n`);
    past.push(line);
    const close = act('close');
    if (close?.act.afterEvents !== undefined && due(close.act.afterEvents)) end();
  };

  response.writeHead(answer.statusCode ?? 200, answer.headers);
  response.flushHeaders();
  const close = act('close');
  if (close?.act.afterMs !== undefined) setTimeout(end, close.act.afterMs).unref();
  const goneNow = act('gone');
  if (goneNow?.act.as === 'event' && (goneNow.act.afterEvents ?? 0) === 0) {
    response.end(`{"type":"ERROR","object":${statusBody(410, 'Expired')}}\n`);
    return;
  }
  const resetNow = act('reset');
  if (resetNow !== undefined && (resetNow.act.afterEvents ?? 0) === 0) return reset(response.socket);
  if (close?.act.afterEvents === 0) return void end();
  answer.setEncoding('utf8');
  answer.on('data', (chunk: string) => {
    const lines = `${rest}${chunk}`.split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) queue = queue.then(() => pass(line));
  });
  answer.on('end', () => void queue.then(end));
  answer.on('error', () => void queue.then(() => reset(response.socket)));
};

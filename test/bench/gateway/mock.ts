// A provider for measurements: streams of numbered chunks at a pace that the model name says, and one whole answer for
// everything else. `node mock.ts`; prints its port. The model `stream-<chunks>-<milliseconds>` sets the pace.
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

const WHOLE = Buffer.from(process.env['MOCK_ANSWER'] ?? '{"model":"m","choices":[],"usage":null}');
const chunkOf = (at: number): string =>
  `data: {"id":"c","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{"content":"word ${at} "},"finish_reason":null}]}\n\n`;
const END = `data: {"id":"c","model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":null}\n\ndata: {"id":"c","model":"m","choices":[],"usage":{"prompt_tokens":500,"completion_tokens":40}}\n\ndata: [DONE]\n\n`;

/** Streams of one pace share a timer, so that the mock is not what is measured. */
const paced = new Map<number, Set<() => void>>();
const every = (gapMs: number, step: () => void): (() => void) => {
  let steps = paced.get(gapMs);
  if (steps === undefined) {
    const made = new Set<() => void>();
    steps = made;
    paced.set(gapMs, made);
    // Spread over the gap, as independent streams would be.
    const slots = 10;
    let slot = 0;
    setInterval(() => {
      slot = (slot + 1) % slots;
      let at = 0;
      for (const each of made) if (at++ % slots === slot) each();
    }, gapMs / slots);
  }
  steps.add(step);
  return () => steps.delete(step);
};

const stream = (response: ServerResponse, chunks: number, gapMs: number): void => {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  response.write(chunkOf(0));
  if (gapMs === 0) {
    let at = 1;
    const more = (): void => {
      while (at < chunks) {
        at += 1;
        if (!response.write(chunkOf(at - 1))) {
          response.once('drain', more);
          return;
        }
      }
      response.end(END);
    };
    more();
    return;
  }
  let at = 1;
  // Frames go straight to the socket: what Node's response does for each of them would be half of what is measured.
  response.flushHeaders();
  const { socket } = response;
  const stop = every(gapMs, () => {
    if (at < chunks && socket !== null && !response.destroyed) {
      const chunk = chunkOf(at);
      socket.write(`${chunk.length.toString(16)}\r\n${chunk}\r\n`, 'latin1');
      at += 1;
      return;
    }
    stop();
    response.end(END);
  });
};

const MODEL = /"model":"[^"]*stream-(\d+)-(\d+)"/;

const server = createServer({ noDelay: true }, (request, response) => {
  const parts: Buffer[] = [];
  request.on('data', (part: Buffer) => parts.push(part));
  request.on('end', () => {
    const head = (parts[0] ?? Buffer.alloc(0)).toString('latin1', 0, 256);
    const [, chunks, gapMs] = MODEL.exec(head) ?? [];
    if (chunks !== undefined) return stream(response, Number(chunks), Number(gapMs));
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': WHOLE.length });
    response.end(WHOLE);
  });
});
server.keepAliveTimeout = 600_000;
server.listen(Number(process.env['MOCK_PORT'] ?? 0), '127.0.0.1', () => {
  console.log((server.address() as AddressInfo).port);
});

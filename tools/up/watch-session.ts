// The live view of one session in a terminal: phases until it is up, then its event stream until the branch is pushed.
// Reads only the public REST API.

/** Calls of the public API with one token. */
export type Api = Readonly<{
  get: <T>(path: string) => Promise<T>;
  send: <T>(method: string, path: string, body: unknown) => Promise<T>;
  open: (path: string, signal: AbortSignal) => Promise<Response>;
}>;

/** The API at a base URL with a bearer token. Errors carry the server's code and message. */
export const makeApi = (baseUrl: string, token: () => Promise<string>): Api => {
  const call = async (method: string, path: string, body?: unknown, signal?: AbortSignal): Promise<Response> => {
    const response = await fetch(baseUrl + path, {
      method,
      headers: {
        authorization: `Bearer ${await token()}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      ...(signal === undefined ? {} : { signal }),
    });
    if (!response.ok) throw new Error(`${method} ${path} answered ${response.status}: ${await response.text()}`);
    return response;
  };
  return {
    get: async <T>(path: string) => (await (await call('GET', path)).json()) as T,
    send: async <T>(method: string, path: string, body: unknown) => {
      const text = await (await call(method, path, body)).text();
      return (text === '' ? undefined : JSON.parse(text)) as T;
    },
    open: (path, signal) => call('GET', path, undefined, signal),
  };
};

type Event = Readonly<{ seq: number; type: string; hidden: boolean; data: Record<string, unknown> }>;

/** Frames of a server-sent event stream: `event` and `data` of each. */
export async function* readFrames(response: Response): AsyncGenerator<Readonly<{ event: string; data: string }>> {
  if (response.body === null) return;
  const decoder = new TextDecoder();
  let rest = '';
  for await (const chunk of response.body) {
    rest += decoder.decode(chunk, { stream: true });
    for (let end = rest.indexOf('\n\n'); end >= 0; end = rest.indexOf('\n\n')) {
      const lines = rest.slice(0, end).split('\n');
      rest = rest.slice(end + 2);
      const field = (name: string): string =>
        lines
          .filter((line) => line.startsWith(`${name}:`))
          .map((line) => line.slice(name.length + 1).trimStart())
          .join('\n');
      if (lines.some((line) => line.startsWith('data:'))) yield { event: field('event'), data: field('data') };
    }
  }
}

const short = (value: unknown, length = 100): string => {
  const text = (typeof value === 'string' ? value : (JSON.stringify(value) ?? '')).replace(/\s+/g, ' ');
  return text.length > length ? `${text.slice(0, length - 1)}…` : text;
};

/** Lines that tell one event to a person; none for events that say nothing to them. */
export const describeEvent = (event: Event, toolsSeen: Map<string, string>): readonly string[] => {
  const { data } = event;
  switch (event.type) {
    case 'workspace.checked_out':
      return [`  checked out ${data['branch']} at ${short(data['commit'], 13)}`];
    case 'turn.started':
      return [`  turn started (harness ${data['harness']}, model ${data['model']})`];
    case 'message.part.updated': {
      const part = data['part'] as {
        type: string;
        tool?: string;
        id: string;
        callId?: string;
        state?: { status: string; input?: unknown; error?: unknown };
      };
      if (part.type !== 'tool') return [];
      const status = String(part.state?.status);
      const key = part.callId ?? part.id;
      if (toolsSeen.get(key) === status) return [];
      toolsSeen.set(key, status);
      if (status === 'running') return [`  > ${part.tool} ${short(part.state?.input)}`];
      if (status === 'error') return [`  ! ${part.tool}: ${short(part.state?.error)}`];
      return [];
    }
    case 'session.status':
      return data['status'] === 'retry' ? [`  waiting for the model: ${short(data['message'])}`] : [];
    case 'permission.asked':
      return [
        `  the agent asks for ${short(data['permission'])} ${short(data['patterns'])}; answer: cli/beeuni sessions approve`,
      ];
    case 'question.asked':
      return ['  the agent asks a question; see cli/beeuni requests, answer with cli/beeuni sessions answer'];
    case 'turn.ended':
      return [`  turn ${String(data['outcome']).toLowerCase()}${data['message'] ? `: ${short(data['message'])}` : ''}`];
    case 'workspace.pushed':
      return [`  pushed ${data['branch']} at ${short(data['commit'], 13)}`];
    case 'workspace.push_failed':
      return [`  push failed: ${data['message']}`];
    default:
      return [];
  }
};

/** End of the watched turn. `pushed` is undefined when nothing was pushed. */
export type Watched = Readonly<{
  outcome: string;
  message: string | undefined;
  pushed: { branch: string; commit: string } | undefined;
}>;

// One stream may stay open this long; it is opened again where it stopped.
const WATCH_LIMIT_MS = 600_000;

/**
 * Follows the events of a session and writes them as text until its first turn has ended and its push is known.
 * Rejects when the stream ends early.
 */
export const watchTurn = async (api: Api, path: string, write: (text: string) => void): Promise<Watched> => {
  const tools = new Map<string, string>();
  let inText = false;
  let pushed: Watched['pushed'];
  let committed = false;
  let ended: { outcome: string; message: string | undefined } | undefined;
  let since = 0;
  for (;;) {
    const response = await api.open(`${path}/events?since=${since}`, AbortSignal.timeout(WATCH_LIMIT_MS));
    for await (const frame of readFrames(response)) {
      if (frame.event === 'hello' || frame.event === 'reset') continue;
      const event = JSON.parse(frame.data) as Event;
      since = event.seq;
      if (event.type === 'message.part.delta' && event.data['field'] === 'text') {
        write(inText ? String(event.data['delta']) : `  ${String(event.data['delta'])}`);
        inText = true;
        continue;
      }
      const lines = describeEvent(event, tools);
      if (lines.length > 0) {
        write(`${inText ? '\n' : ''}${lines.join('\n')}\n`);
        inText = false;
      }
      if (event.type === 'workspace.committed') committed = true;
      if (event.type === 'turn.ended')
        ended = {
          outcome: String(event.data['outcome']),
          message: (event.data['message'] as string | null) ?? undefined,
        };
      if (event.type === 'workspace.pushed')
        pushed = { branch: String(event.data['branch']), commit: String(event.data['commit']) };
      // Without a commit no push follows.
      const settled = pushed !== undefined || event.type === 'workspace.push_failed' || !committed;
      if (ended && (settled || ended.outcome !== 'Succeeded')) {
        return { ...ended, pushed };
      }
    }
  }
};

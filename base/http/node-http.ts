// Node's own HTTP without Node's `fetch`: an import of `node:http` reads each of its exports once, and some of those load the
// whole of fetch, 37 ms and 10 MB that a sandbox does not need. Must not know who calls whom. Source: docs/decisions/0049.
import type { AgentOptions, ClientRequest, Agent as HttpAgent, IncomingMessage, RequestOptions } from 'node:http';

const http = process.getBuiltinModule('node:http');

/** As of `node:http`; its types can be imported from there. */
export const { Agent, createServer, request, ServerResponse, STATUS_CODES } = http;

/** How calls of one protocol are made: by an agent that the request is given. */
export type Way = Readonly<{
  agent: HttpAgent;
  request: (options: RequestOptions, onAnswer: (answer: IncomingMessage) => void) => ClientRequest;
}>;

/** Both ways, with agents of their own. That of `https:` is made for the first call that needs it: TLS takes 4 MB. */
export type Ways = Readonly<{ of: (protocol: string) => Way; destroy: () => void }>;

/** Makes both; `destroy` ends their connections. */
export const makeWays = (options: AgentOptions): Ways => {
  const plain: Way = { agent: new Agent(options), request };
  let secured: Way | undefined;
  const loadSecured = (): Way => {
    const https = process.getBuiltinModule('node:https');
    return { agent: new https.Agent(options), request: https.request };
  };
  return {
    of: (protocol) => {
      if (protocol !== 'https:') return plain;
      secured ??= loadSecured();
      return secured;
    },
    destroy: () => {
      plain.agent.destroy();
      secured?.agent.destroy();
    },
  };
};

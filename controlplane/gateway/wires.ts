// The model APIs that the gateway speaks: for each its path at the provider, the kind of provider that speaks it, how it
// reports, and the shape of its errors. Bodies pass untranslated. Must not know calls. Source: 20-control-plane §5.
import type { PROVIDER_KINDS } from '#schema/settings/providers.ts';
import { chatReported, messagesReported, type ReadReported, responsesReported } from './reported.ts';

/** Kind of API that a provider speaks. */
export type ProviderKind = (typeof PROVIDER_KINDS)[number];

/** One model API. `path` is what follows a provider's base URL. */
export type Wire = Readonly<{
  id: 'chat' | 'responses' | 'messages' | 'embeddings';
  path: string;
  kind: ProviderKind;
  errors: 'openai' | 'anthropic';
  reported: ReadReported;
}>;

const openai = { kind: 'openai-compatible', errors: 'openai' } as const;

/** Every wire by its id. */
export const WIRES = {
  chat: { id: 'chat', path: '/chat/completions', reported: chatReported, ...openai },
  responses: { id: 'responses', path: '/responses', reported: responsesReported, ...openai },
  embeddings: { id: 'embeddings', path: '/embeddings', reported: chatReported, ...openai },
  messages: {
    id: 'messages',
    path: '/messages',
    kind: 'anthropic',
    errors: 'anthropic',
    reported: messagesReported,
  },
} as const satisfies Readonly<Record<Wire['id'], Wire>>;

/** Version of Anthropic's API for a client that names none. */
const ANTHROPIC_VERSION = '2023-06-01';
const VERSION = /^\d{4}-\d{2}-\d{2}$/;
const BETAS = /^[a-z0-9.,\- ]{1,512}$/i;

/** What the value of a header may hold. */
const VISIBLE = /^[\x20-\x7e]*$/;

/** What decides about the header lines of calls to a provider. */
type LinesFor = Readonly<{ key: string | undefined; isStream: boolean; version: string; betas: string; lines: string }>;

/** What of a client's request decides about headers at the provider. */
export type ClientHeaders = Readonly<{ header: (name: string) => string | undefined }>;

/** What of a provider decides about headers; the registry gives another object when it has changed. */
export type ProviderHeaders = Readonly<{ headers: Readonly<Record<string, string | undefined>> }>;

/** Header lines of a call to a provider, each with its end: nothing of the client's but what is named here. */
export type HeadersFor = (
  provider: ProviderHeaders,
  call: Readonly<{ key: string | undefined; isStream: boolean; client: ClientHeaders }>,
) => string;

const linesFor = (wire: Wire, provider: ProviderHeaders, call: Omit<LinesFor, 'lines'>): string => {
  const { key, isStream, version, betas } = call;
  if (key !== undefined && !VISIBLE.test(key))
    throw new Error('a provider key holds a character that no header may hold');
  const lines = [
    'content-type: application/json',
    `accept: ${isStream ? 'text/event-stream' : 'application/json'}`,
    'accept-encoding: identity',
    'user-agent: beeuni-gateway',
  ];
  for (const name in provider.headers) {
    const value = provider.headers[name];
    if (value !== undefined) lines.push(`${name}: ${value}`);
  }
  if (wire.kind === 'anthropic') {
    lines.push(`anthropic-version: ${version}`);
    if (betas !== '') lines.push(`anthropic-beta: ${betas}`);
    if (key !== undefined) lines.push(`x-api-key: ${key}`);
  } else if (key !== undefined) {
    lines.push(`authorization: Bearer ${key}`);
  }
  if (lines.some((line) => /[\r\n]/.test(line))) throw new Error('a header of a provider holds the end of a line');
  return `${lines.join('\r\n')}\r\n`;
};

/**
 * Makes the header lines of a wire's calls. The last ones of each provider are kept, as those of the next call are mostly
 * the same. Source: 20-control-plane §5, CVE-2026-75871.
 */
export const makeHeadersFor = (wire: Wire): HeadersFor => {
  const last = new WeakMap<ProviderHeaders, LinesFor>();
  return (provider, { key, isStream, client }) => {
    let version = '';
    let betas = '';
    if (wire.kind === 'anthropic') {
      const asked = client.header('anthropic-version') ?? '';
      version = VERSION.test(asked) ? asked : ANTHROPIC_VERSION;
      betas = client.header('anthropic-beta') ?? '';
      if (!BETAS.test(betas)) betas = '';
    }
    const held = last.get(provider);
    if (held?.key === key && held?.isStream === isStream && held.version === version && held.betas === betas) {
      return held.lines;
    }
    const lines = linesFor(wire, provider, { key, isStream, version, betas });
    last.set(provider, { key, isStream, version, betas, lines });
    return lines;
  };
};

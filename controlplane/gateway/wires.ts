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

/** What of a client's request decides about headers at the provider. */
export type ClientHeaders = Readonly<Record<string, string | readonly string[] | undefined>>;

/**
 * Headers of a call to a provider, as a flat list of names and values: nothing of the client's but what is named here.
 * Source: 20-control-plane §5, CVE-2026-75871.
 */
export const headersFor = (
  wire: Wire,
  provider: Readonly<{ headers: Readonly<Record<string, string | undefined>> }>,
  call: Readonly<{ key: string | undefined; isStream: boolean; bytes: number; client: ClientHeaders }>,
): string[] => {
  if (call.key !== undefined && !VISIBLE.test(call.key))
    throw new Error('a provider key holds a character that no header may hold');
  const list = [
    'content-type',
    'application/json',
    'content-length',
    String(call.bytes),
    'accept',
    call.isStream ? 'text/event-stream' : 'application/json',
    'accept-encoding',
    'identity',
    'user-agent',
    'beeuni-gateway',
  ];
  for (const name in provider.headers) {
    const value = provider.headers[name];
    if (value !== undefined) list.push(name, value);
  }
  if (wire.kind === 'anthropic') {
    const version = call.client['anthropic-version'];
    const betas = call.client['anthropic-beta'];
    list.push('anthropic-version', typeof version === 'string' && VERSION.test(version) ? version : ANTHROPIC_VERSION);
    if (typeof betas === 'string' && BETAS.test(betas)) list.push('anthropic-beta', betas);
    if (call.key !== undefined) list.push('x-api-key', call.key);
  } else if (call.key !== undefined) {
    list.push('authorization', `Bearer ${call.key}`);
  }
  return list;
};

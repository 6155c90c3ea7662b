// The control plane as the daemon sees it: the calls of the sandbox listener, with the credential of each.
// The session credential lives here, in memory, and nowhere else. Must not know what the answers are used for. Source: D6, D7.
import { readFile } from 'node:fs/promises';
import { UnavailableError } from '#base/errors.ts';
import { createClient } from '#base/http/client.ts';
import { type ClaimAnswer, type ClaimRequest, claimRoute } from '#schema/wire/claim.ts';
import { type HealthDocument, healthReportRoute } from '#schema/wire/health.ts';
import type { DeliveredAnswer } from '#schema/wire/requests.ts';
import { appendEventsRoute, byeRoute, nextTurnRoute, type Turn } from '#schema/wire/turns.ts';
import {
  type ImageResult,
  type ScrapedPage,
  type SearchResult,
  webImagesRoute,
  webScrapeRoute,
  webSearchRoute,
} from '#schema/wire/web.ts';

/** The server holds a claim for up to 25 s. Units: milliseconds. */
const CLAIM_TIMEOUT_MS = 40_000;
const CALL_TIMEOUT_MS = 15_000;
const BYE_TIMEOUT_MS = 3_000;
/** A search engine or a page may be slow; the control plane's own limits are shorter. */
const WEB_TIMEOUT_MS = 60_000;

/** The answer to a claim: all of the session, or why to ask again. */
export type Claimed = Readonly<{ state: 'claimed'; claim: ClaimAnswer }> | Readonly<{ state: 'wait'; reason: string }>;

/** What the control plane wants of a daemon that reported. */
export type ReportAnswer = Readonly<{
  promptsWaiting: boolean;
  abortTurnId: string | null;
  answers: readonly DeliveredAnswer[];
}>;

/** Calls of one session; all reject with a BeeuniError: ConflictError when a newer daemon exists. */
export type SessionCalls = Readonly<{
  reportHealth: (document: HealthDocument, signal?: AbortSignal) => Promise<ReportAnswer>;
  takeNextTurn: (signal?: AbortSignal) => Promise<Turn | null>;
  /** Each line is the JSON of an event. */
  appendEvents: (lines: readonly string[], signal?: AbortSignal) => Promise<Readonly<{ acknowledgedN: number }>>;
  bye: (reason: string) => Promise<void>;
  /** The web as the control plane offers it. Source: A115. */
  web: Readonly<{
    search: (query: string, limit: number, signal: AbortSignal) => Promise<readonly SearchResult[]>;
    searchImages: (query: string, limit: number, signal: AbortSignal) => Promise<readonly ImageResult[]>;
    scrape: (url: string, signal: AbortSignal) => Promise<ScrapedPage>;
  }>;
}>;

/** Where to call, and what proves this pod. */
export type ControlPlanePorts = Readonly<{ baseUrl: string; tokenFile: string; fetch?: typeof fetch | undefined }>;

/** Asks for the session of this pod. The token file is read for every call: the kubelet replaces it. */
export const makeClaim =
  (ports: ControlPlanePorts) =>
  async (request: ClaimRequest, signal: AbortSignal): Promise<Claimed> => {
    const client = createClient({
      baseUrl: ports.baseUrl,
      peer: 'the control plane',
      unreachable: 'control_plane_unavailable',
      fetch: ports.fetch,
      token: async () => {
        try {
          return (await readFile(ports.tokenFile, 'utf8')).trim();
        } catch (error) {
          throw new UnavailableError('not_ready', 'the token file of the pod cannot be read', { cause: error });
        }
      },
    });
    const answer = await client.call(claimRoute, { body: request }, { signal, timeoutMs: CLAIM_TIMEOUT_MS });
    return answer.status === 202
      ? { state: 'wait', reason: answer.body.reason }
      : { state: 'claimed', claim: answer.body };
  };

/** The calls of a claimed session. */
export const makeSessionCalls = (ports: ControlPlanePorts, credential: string): SessionCalls => {
  const client = createClient({
    baseUrl: ports.baseUrl,
    peer: 'the control plane',
    unreachable: 'control_plane_unavailable',
    fetch: ports.fetch,
    token: () => credential,
  });
  const onWeb = (signal: AbortSignal) => ({ signal, timeoutMs: WEB_TIMEOUT_MS });
  const options = (signal: AbortSignal | undefined) => ({ signal, timeoutMs: CALL_TIMEOUT_MS });
  return {
    reportHealth: async (document, signal) =>
      (await client.call(healthReportRoute, { body: document }, options(signal))).body,
    takeNextTurn: async (signal) => (await client.call(nextTurnRoute, { body: {} }, options(signal))).body.turn,
    appendEvents: async (lines, signal) => {
      const bodyText = `{"events":[${lines.join(',')}]}`;
      return (await client.call(appendEventsRoute, { body: { events: [] } }, { ...options(signal), bodyText })).body;
    },
    bye: async (reason) => {
      await client.call(byeRoute, { body: { reason } }, { timeoutMs: BYE_TIMEOUT_MS });
    },
    web: {
      search: async (query, limit, signal) =>
        (await client.call(webSearchRoute, { body: { query, limit } }, onWeb(signal))).body.results,
      searchImages: async (query, limit, signal) =>
        (await client.call(webImagesRoute, { body: { query, limit } }, onWeb(signal))).body.results,
      scrape: async (url, signal) => (await client.call(webScrapeRoute, { body: { url } }, onWeb(signal))).body,
    },
  };
};

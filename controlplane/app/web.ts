// The rules of the web tools: which are there, which project may use them, and how often a session may call.
// Must not know search engines or HTTP. Source: A44, A52, A92, A115, D15.
import { ForbiddenError, LimitError, UnsupportedError } from '#base/errors.ts';
import type { BeeuniTool } from '#schema/manifest/manifest.ts';
import type { ImageResult, ScrapedPage, SearchResult } from '#schema/wire/web.ts';
import type { SandboxIdentity } from './ports.ts';
import type { ProjectConfig } from './project-ports.ts';
import type { TakeCall } from './rate-limit.ts';

/** What a web tool of a session is for. */
export type WebToolName = Extract<BeeuniTool, 'web_search' | 'image_search' | 'scrape_webpage'>;

/** Ports of the rules. A back end that is undefined is not configured. */
export type WebPorts = Readonly<{
  search: ((query: string, limit: number, signal: AbortSignal) => Promise<readonly SearchResult[]>) | undefined;
  searchImages: ((query: string, limit: number, signal: AbortSignal) => Promise<readonly ImageResult[]>) | undefined;
  scrape: ((url: string, signal: AbortSignal) => Promise<ScrapedPage>) | undefined;
  findConfig: (projectUid: string) => Promise<ProjectConfig | undefined>;
  takeCall: TakeCall;
  observe: (tool: WebToolName, result: 'ok' | 'failed') => void;
}>;

type Caller = Pick<SandboxIdentity, 'sessionUid' | 'projectUid'>;

/**
 * The web for sandboxes. Errors: UnsupportedError `web_not_configured`, ForbiddenError `forbidden` when no agent of the
 * project is granted the tool, LimitError `rate_limited`, and those of the back ends.
 */
export type Web = Readonly<{
  search: (caller: Caller, query: string, limit: number, signal: AbortSignal) => Promise<readonly SearchResult[]>;
  searchImages: (caller: Caller, query: string, limit: number, signal: AbortSignal) => Promise<readonly ImageResult[]>;
  scrape: (caller: Caller, url: string, signal: AbortSignal) => Promise<ScrapedPage>;
}>;

/** Whether an agent of the project is granted the tool: a sandbox may say any agent, so the project is what counts. */
export const isToolGranted = (config: ProjectConfig | undefined, tool: WebToolName): boolean => {
  if (config === undefined || config.beeuniTools?.includes(tool) === false) return false;
  return config.agents.some(({ tools }) => tools === 'all' || (tools !== 'none' && tools.includes(tool)));
};

/** Makes the rules. */
export const makeWeb = (ports: WebPorts): Web => {
  const call = async <T>(caller: Caller, tool: WebToolName, run: (() => Promise<T>) | undefined): Promise<T> => {
    if (run === undefined) {
      throw new UnsupportedError(
        'web_not_configured',
        `${tool} has no back end in this installation; whoever runs it can configure one`,
      );
    }
    if (!isToolGranted(await ports.findConfig(caller.projectUid), tool)) {
      throw new ForbiddenError('forbidden', `no agent of the project is granted ${tool}`);
    }
    const retryAfterMs = ports.takeCall(caller.sessionUid);
    if (retryAfterMs !== undefined) {
      throw new LimitError('rate_limited', 'too many web calls of this session; wait and try again', { retryAfterMs });
    }
    try {
      const result = await run();
      ports.observe(tool, 'ok');
      return result;
    } catch (error) {
      ports.observe(tool, 'failed');
      throw error;
    }
  };
  const { search, searchImages, scrape } = ports;
  return {
    search: (caller, query, limit, signal) =>
      call(caller, 'web_search', search && (() => search(query, limit, signal))),
    searchImages: (caller, query, limit, signal) =>
      call(caller, 'image_search', searchImages && (() => searchImages(query, limit, signal))),
    scrape: (caller, url, signal) => call(caller, 'scrape_webpage', scrape && (() => scrape(url, signal))),
  };
};

// Handlers of prompts and of the running turn. Must not know the inbox. Source: 20-control-plane §3, §9, §12.
import { ConflictError, InvalidError, UnsupportedError } from '#base/errors.ts';
import type { Project } from '#schema/resources/project.ts';
import type { Session } from '#schema/resources/session.ts';
import type {
  abortRoute,
  createPromptRoute,
  deletePromptRoute,
  getPromptRoute,
  listPromptsRoute,
} from '#schema/rest/prompts.ts';
import type { ModelVerdict } from '#schema/rest/workspace.ts';
import { callerName } from '../app/caller.ts';
import { checkAgentOf, checkModelOf } from '../app/check-session-spec.ts';
import type { Prompts } from '../app/prompts.ts';
import { type Fetch, requireSession } from './find-objects.ts';
import type { Handler } from './handler.ts';

/** What the handlers need. */
export type PromptPorts = Readonly<{
  fetchSession: Fetch<Session>;
  fetchProject: Fetch<Project>;
  /** The verdict on a model name. Errors: UnavailableError `registry_unavailable`. */
  judgeModel: (name: string) => Promise<ModelVerdict | undefined>;
  prompts: Pick<Prompts, 'send' | 'list' | 'get' | 'withdraw' | 'abortTurn'>;
}>;

/** The handlers, one per route of schema/rest/prompts.ts that is no stream. */
export type PromptHandlers = Readonly<{
  createPrompt: Handler<typeof createPromptRoute>;
  listPrompts: Handler<typeof listPromptsRoute>;
  getPrompt: Handler<typeof getPromptRoute>;
  deletePrompt: Handler<typeof deletePromptRoute>;
  abortSessionTurn: Handler<typeof abortRoute>;
}>;

/** Refuses a write to a subagent's conversation. Source: A65. */
export const checkThread = (threadId: string | undefined): void => {
  if (threadId === undefined || threadId === 'root') return;
  throw new UnsupportedError('feature_not_supported', 'the conversation of a subagent is read-only', {
    details: { capability: 'session.subagents', threadId },
  });
};

/** Refuses a prompt that no turn will ever run. Source: 20-control-plane §12. */
export const checkTakesPrompts = ({ metadata, status }: Session): void => {
  const { name } = metadata;
  if (metadata.deletionTimestamp !== undefined) {
    throw new ConflictError('session_failed', `session ${name} is being deleted`);
  }
  const phase = status?.phase;
  if (phase === 'Failed') {
    const cause = status?.failure?.message ?? 'its failure is in status.failure';
    throw new ConflictError('session_failed', `session ${name} has failed: ${cause}; restart it first`);
  }
  if (phase === 'Succeeded' || phase === 'Expired') {
    throw new ConflictError('session_failed', `session ${name} is finished (${phase}); create another one`);
  }
};

/** Most text of one prompt. Units: bytes of UTF-8. */
export const MAX_PROMPT_BYTES = 1_048_576;

/** Refuses a prompt whose texts are together above the limit. Errors: InvalidError `prompt_too_large`. */
export const checkPromptSize = (parts: readonly Readonly<{ type: string; text?: string | undefined }>[]): void => {
  const bytes = parts.reduce((sum, { text }) => sum + Buffer.byteLength(text ?? ''), 0);
  if (bytes <= MAX_PROMPT_BYTES) return;
  throw new InvalidError(
    'prompt_too_large',
    `the prompt has ${bytes} bytes of text, above the limit of ${MAX_PROMPT_BYTES}; put long text into a file of the session`,
  );
};

/** Makes the handlers. */
export const makePromptHandlers = (ports: PromptPorts): PromptHandlers => {
  const found = requireSession(ports.fetchSession);
  return {
    createPrompt: async ({ params, body, caller }) => {
      checkPromptSize(body.parts);
      const session = await found(params);
      checkThread(body.threadId);
      checkTakesPrompts(session);
      if (body.agent !== undefined || body.model !== undefined) {
        const project = await ports.fetchProject(params.namespace, session.spec.projectRef.name);
        if (project !== undefined && body.agent !== undefined) checkAgentOf(project, body.agent);
        if (project !== undefined && body.model !== undefined)
          await checkModelOf(project, body.model, ports.judgeModel);
      }
      const { messageId, delivery, parts, agent, model } = body;
      const sentBy = callerName(caller);
      const view = await ports.prompts.send(session, { messageId, delivery, parts, agent, model, sentBy });
      return { status: view.deduplicated ? 200 : 202, body: view };
    },
    listPrompts: async ({ params, query }) => {
      const page = await ports.prompts.list(await found(params), query);
      return { status: 200, body: { items: [...page.items], cursor: page.cursor } };
    },
    getPrompt: async ({ params }) => ({ status: 200, body: await ports.prompts.get(await found(params), params.id) }),
    deletePrompt: async ({ params }) => {
      await ports.prompts.withdraw(await found(params), params.id);
      return { status: 204, body: null };
    },
    abortSessionTurn: async ({ params }) => ({
      status: 202,
      body: { turnId: await ports.prompts.abortTurn(await found(params)) },
    }),
  };
};

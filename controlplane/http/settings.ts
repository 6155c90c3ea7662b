// Handlers of the supervisor API. Must not know the rules of settings. Source: 40-settings B22 to B25.
import type {
  getEffectiveSettingsRoute,
  getSupervisorRoute,
  putSupervisorRoute,
} from '#schema/rest/workspace-settings.ts';
import { callerName } from '../app/caller.ts';
import { parseIfMatch } from '../app/if-match.ts';
import type { SettingsApp } from '../app/settings.ts';
import type { Handler } from './handler.ts';

/** The handlers, one per route of schema/rest/workspace-settings.ts. */
export type SettingsHandlers = Readonly<{
  getSupervisor: Handler<typeof getSupervisorRoute>;
  putSupervisor: Handler<typeof putSupervisorRoute>;
  getEffectiveSettings: Handler<typeof getEffectiveSettingsRoute>;
}>;

/** Makes the handlers. Errors: those of the app. */
export const makeSettingsHandlers = (app: Pick<SettingsApp, 'view' | 'change' | 'explain'>): SettingsHandlers => ({
  getSupervisor: async () => ({ status: 200, body: await app.view() }),
  putSupervisor: async ({ body, caller, requestId, header }) => ({
    status: 200,
    body: await app.change(body, parseIfMatch(header('if-match')), { subject: callerName(caller), requestId }),
  }),
  getEffectiveSettings: async () => ({ status: 200, body: await app.explain() }),
});

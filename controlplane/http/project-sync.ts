// Handlers of the operator's calls about projects. Must not know how a project is synced. Source: 10-kubernetes §6.
import { InvalidError } from '#base/errors.ts';
import type { closeProjectRoute, secretChangedRoute, syncProjectRoute } from '#schema/wire/sync.ts';
import type { ProjectSync } from '../app/project-sync.ts';
import type { Handler } from './handler.ts';

/** The handlers, one per route of schema/wire/sync.ts that is about projects. */
export type ProjectSyncHandlers = Readonly<{
  syncProject: Handler<typeof syncProjectRoute>;
  closeProject: Handler<typeof closeProjectRoute>;
  secretChanged: Handler<typeof secretChangedRoute>;
}>;

/** Uids become names of folders, so they must look like uids. */
const UID = /^[A-Za-z0-9-]{1,64}$/;
const checked = (uid: string): string => {
  if (!UID.test(uid)) throw new InvalidError('invalid_request', 'uid does not have the form of one');
  return uid;
};

/** Makes the handlers. Errors: those of the app. */
export const makeProjectSyncHandlers = (
  app: Pick<ProjectSync, 'sync' | 'close' | 'secretChanged'>,
): ProjectSyncHandlers => ({
  syncProject: async ({ params, body, signal }) => ({
    status: 200,
    body: await app.sync({ uid: checked(body.uid), ...params }, body, signal),
  }),
  closeProject: async ({ params }) => {
    await app.close(checked(params.uid));
    return { status: 204, body: null };
  },
  secretChanged: async ({ params, body }) => {
    await app.secretChanged(checked(params.uid), body.secretName);
    return { status: 202, body: {} };
  },
});

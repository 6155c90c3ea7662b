// Finds the project or session that a path names, or says clearly that there is none.
// Must not know where objects are kept.
import { NotFoundError } from '#base/errors.ts';
import type { Project } from '#schema/resources/project.ts';
import type { Session } from '#schema/resources/session.ts';

/** Namespace and name of a path. */
export type ObjectParams = Readonly<{ namespace: string; name: string }>;

/** Looks an object up; undefined when there is none. Errors: UnavailableError. */
export type Fetch<T> = (namespace: string, name: string) => Promise<T | undefined>;

/** Gives back the object. Errors: NotFoundError, UnavailableError. */
export type Require<T> = (params: ObjectParams) => Promise<T>;

/** Errors: NotFoundError `session_not_found`. */
export const requireSession =
  (fetch: Fetch<Session>): Require<Session> =>
  async ({ namespace, name }) => {
    const session = await fetch(namespace, name);
    if (session !== undefined) return session;
    throw new NotFoundError('session_not_found', `there is no session ${name} in namespace ${namespace}`);
  };

/** Errors: NotFoundError `project_not_found`. */
export const requireProject =
  (fetch: Fetch<Project>): Require<Project> =>
  async ({ namespace, name }) => {
    const project = await fetch(namespace, name);
    if (project !== undefined) return project;
    throw new NotFoundError('project_not_found', `there is no project ${name} in namespace ${namespace}`);
  };

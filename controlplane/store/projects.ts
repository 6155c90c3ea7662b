// The table of projects as the app's port. A result and the fact about it are one transaction.
// Must not know what a sync does.

import type { ProjectFact, SyncRequest } from '#schema/wire/sync.ts';
import type { ProjectConfig, ProjectKey, ProjectStore, StoredProject } from '../app/project-ports.ts';
import { raiseFact } from './facts.ts';
import { type Database, firstRow, type Statement } from './statement.ts';

type ProjectRow = Readonly<{
  uid: string;
  namespace: string;
  name: string;
  request: SyncRequest;
  fact: ProjectFact | null;
  config: ProjectConfig | null;
  secrets_revision: number;
}>;

const COLUMNS = 'uid, namespace, name, request, fact, config, secrets_revision';

const storedOf = (row: ProjectRow): StoredProject => ({
  uid: row.uid,
  namespace: row.namespace,
  name: row.name,
  request: row.request,
  fact: row.fact ?? undefined,
  config: row.config ?? undefined,
  secretsRevision: row.secrets_revision,
});

const saveRequest = (key: ProjectKey, request: SyncRequest, dueAt: string): Statement<ProjectRow> => ({
  text: `insert into projects (uid, namespace, name, request, due_at) values ($1, $2, $3, $4, $5)
    on conflict (uid) do update set
      request = case when (projects.request->>'generation')::bigint > (excluded.request->>'generation')::bigint
        then projects.request else excluded.request end,
      due_at = least(projects.due_at, excluded.due_at)
    returning ${COLUMNS}`,
  values: [key.uid, key.namespace, key.name, JSON.stringify(request), dueAt],
});

const findProject = (uid: string): Statement<ProjectRow> => ({
  text: `select ${COLUMNS} from projects where uid = $1`,
  values: [uid],
});

const listProjects = (afterUid: string, limit: number): Statement<ProjectRow> => ({
  text: `select ${COLUMNS} from projects where uid > $1 order by uid limit $2`,
  values: [afterUid, limit],
});

const saveResult = (
  uid: string,
  fact: ProjectFact,
  config: ProjectConfig | undefined,
  dueAt: string | null,
): Statement<{ fact: ProjectFact }> => ({
  // The budget is another writer's, and may have changed since this look began.
  text: `update projects set
      fact = $2::jsonb || jsonb_build_object('budget', coalesce(fact -> 'budget', $2::jsonb -> 'budget')),
      config = $3, due_at = $4, registry_generation = $5
    where uid = $1 returning fact`,
  values: [
    uid,
    JSON.stringify(fact),
    config === undefined ? null : JSON.stringify(config),
    dueAt,
    fact.models.registryGeneration,
  ],
});

const takeDue = (now: string, leaseUntil: string, limit: number): Statement<{ uid: string }> => ({
  text: `update projects set due_at = $2 where uid in (
      select uid from projects where due_at <= $1 order by due_at limit $3 for update skip locked)
    returning uid`,
  values: [now, leaseUntil, limit],
});

const raiseSecretsRevision = (uid: string): Statement<{ secrets_revision: number }> => ({
  text: 'update projects set secrets_revision = secrets_revision + 1 where uid = $1 returning secrets_revision',
  values: [uid],
});

const removeProject = (uid: string): Statement<{ uid: string }> => ({
  text: 'delete from projects where uid = $1 returning uid',
  values: [uid],
});

/** The store over a database. */
export const makeProjectStore = (database: Database): ProjectStore => ({
  saveRequest: async (key, request, dueAt) => {
    const row = await firstRow(database.query, saveRequest(key, request, dueAt));
    if (row === undefined) throw new Error('an upsert of a project gave no row');
    return storedOf(row);
  },
  find: async (uid) => {
    const row = await firstRow(database.query, findProject(uid));
    return row === undefined ? undefined : storedOf(row);
  },
  list: async (afterUid, limit) => (await database.query(listProjects(afterUid, limit))).map(storedOf),
  saveResult: (uid, { fact, config, dueAt, isNews }) =>
    database.withTransaction(async (query) => {
      const row = await firstRow(query, saveResult(uid, fact, config, dueAt));
      if (row !== undefined && isNews) await raiseFact(query, { kind: 'project', uid, body: row.fact });
    }),
  takeDue: async (now, leaseUntil, limit) =>
    (await database.query(takeDue(now, leaseUntil, limit))).map((row) => row.uid),
  raiseSecretsRevision: async (uid) => (await firstRow(database.query, raiseSecretsRevision(uid)))?.secrets_revision,
  remove: (uid) =>
    database.withTransaction(async (query) => {
      const row = await firstRow(query, removeProject(uid));
      if (row !== undefined) await raiseFact(query, { kind: 'gone', uid });
    }),
});

// The table of agent policies as the app's port. Must not know what a policy means.
import { AGENT_POLICY_FIELDS, NO_POLICY, type SavedPolicy } from '#schema/settings/agent-policy.ts';
import type { AgentPolicyStore, PolicyKey, StoredPolicy } from '../app/agent-policies.ts';
import type { SettingsAuthor } from '../app/settings-ports.ts';
import { type Database, firstRow, type Statement } from './statement.ts';

type PolicyRow = SavedPolicy & Readonly<{ agent: string; revision: number }>;

const COLUMNS = 'agent, vision, vision_describe, vision_keep_images, revision';

const listPolicies = (projectUid: string): Statement<PolicyRow> => ({
  text: `select ${COLUMNS} from agent_policies where project_uid = $1 order by agent`,
  values: [projectUid],
});

const getPolicy = (projectUid: string, agent: string): Statement<PolicyRow> => ({
  text: `select ${COLUMNS} from agent_policies where project_uid = $1 and agent = $2`,
  values: [projectUid, agent],
});

/** Makes sure that there is a row, for a project that is there. */
const ensurePolicy = (projectUid: string, agent: string): Statement => ({
  text: `insert into agent_policies (project_uid, agent) select uid, $2 from projects where uid = $1
    on conflict do nothing`,
  values: [projectUid, agent],
});

const lockPolicy = (projectUid: string, agent: string): Statement<PolicyRow> => ({
  text: `select ${COLUMNS} from agent_policies where project_uid = $1 and agent = $2 for update`,
  values: [projectUid, agent],
});

const savePolicy = ({ projectUid, agent }: PolicyKey, saved: SavedPolicy): Statement<PolicyRow> => ({
  text: `update agent_policies set vision = $3, vision_describe = $4, vision_keep_images = $5, revision = revision + 1,
      updated_at = now() where project_uid = $1 and agent = $2 returning ${COLUMNS}`,
  values: [projectUid, agent, saved.vision, saved.vision_describe, saved.vision_keep_images],
});

/** One finished audit row per changed field. */
const auditPolicy = (key: PolicyKey, author: SettingsAuthor, before: SavedPolicy, after: SavedPolicy): Statement => {
  const changed = AGENT_POLICY_FIELDS.filter((field) => before[field] !== after[field]);
  return {
    text: `insert into audit (request_id, subject, operation, namespace, name, body_digest, status, ended_at, before, after)
      select $1, $2, 'saveAgentPolicy', $3, name, encode(sha256(convert_to(name || ' ' || after, 'UTF8')), 'hex'), 200,
        now(), before::jsonb, after::jsonb
      from unnest($4::text[], $5::text[], $6::text[]) as w(name, before, after)`,
    values: [
      author.requestId,
      author.subject,
      key.namespace,
      changed.map((field) => `${key.project}/agents/${key.agent}/${field}`),
      changed.map((field) => JSON.stringify(before[field])),
      changed.map((field) => JSON.stringify(after[field])),
    ],
  };
};

const storedOf = ({ agent, revision, ...saved }: PolicyRow): StoredPolicy => ({ agent, revision, saved });

/** The store over a database. */
export const makeAgentPolicyStore = (database: Database): AgentPolicyStore => ({
  list: async (projectUid) => (await database.query(listPolicies(projectUid))).map(storedOf),
  find: async (projectUid, agent) => {
    const row = await firstRow(database.query, getPolicy(projectUid, agent));
    return row === undefined ? { agent, revision: 0, saved: NO_POLICY } : storedOf(row);
  },
  change: (key, author, decide) =>
    database.withTransaction(async (query) => {
      await query(ensurePolicy(key.projectUid, key.agent));
      const row = await firstRow(query, lockPolicy(key.projectUid, key.agent));
      if (row === undefined) return undefined;
      const before = storedOf(row);
      const after = decide(before);
      if (after === undefined) return before;
      const saved = await firstRow(query, savePolicy(key, after));
      if (saved === undefined) throw new Error('a locked policy was not saved');
      await query(auditPolicy(key, author, before.saved, after));
      return storedOf(saved);
    }),
});

// Which secrets of a project reach an agent: the Project's list, the manifest's grant and the session's scope, all three.
// Pure. Must not know values. Source: 10-kubernetes §2 "Grants", A182, A183.
import type { GrantSet } from '#schema/manifest/summary.ts';

/** One secret of a Project. */
export type ProjectSecret = Readonly<{
  env: string;
  identifier?: string | undefined;
  secretRef: Readonly<{ name: string; key: string }>;
  agents: readonly string[];
}>;

/** Secrets that the agent may see. `grant`: what the manifest gives it; `scope`: the session's own list, absent is all. */
export const grantedSecrets = (
  secrets: readonly ProjectSecret[],
  agent: string,
  grant: GrantSet,
  scope: readonly string[] | undefined,
): readonly ProjectSecret[] =>
  secrets.filter((secret) => {
    const names = [secret.identifier ?? secret.env, secret.env];
    const isNamed = (list: readonly string[]): boolean => names.some((name) => list.includes(name));
    const byProject = secret.agents.includes('*') || secret.agents.includes(agent);
    const byManifest = grant === 'all' || (grant !== 'none' && isNamed(grant));
    return byProject && byManifest && (scope === undefined || isNamed(scope));
  });

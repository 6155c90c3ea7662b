// The environment that commands of the agent get beside the harness's own: what the session is, and what was granted.
// Pure. Must not know how it reaches a command. Source: A202, 10-kubernetes §7.
import type { ClaimAnswer } from '#schema/wire/claim.ts';

/** Names that a grant may not set: they are ours or steer the harness. */
const RESERVED = /^(BEEUNI_|OPENCODE_|XDG_|LD_|NODE_OPTIONS$|PATH$|HOME$|TMPDIR$)/;

/** The granted secrets that are in force. */
export type Grants = Readonly<{ revision: number; environment: Readonly<Record<string, string>> }>;

/** Variables for a command, secrets included. */
export const commandEnvironment = (claim: ClaimAnswer, grants: Grants): Record<string, string> => {
  const granted = Object.entries(grants.environment).filter(([name]) => !RESERVED.test(name));
  return {
    ...Object.fromEntries(granted),
    BEEUNI_PROJECT_ID: claim.project.uid,
    BEEUNI_SESSION: claim.session.name,
    BEEUNI_SESSION_UID: claim.session.uid,
    BEEUNI_BRANCH: claim.branch,
    BEEUNI_DEFAULT_BRANCH: claim.baseBranch,
    BEEUNI_BASE_REF: claim.baseCommit,
    ...(claim.agent === null ? {} : { BEEUNI_AGENT: claim.agent }),
    ...(claim.model === null ? {} : { BEEUNI_MODEL: claim.model.name }),
    BEEUNI_SECRET_NAMES: granted
      .map(([name]) => name)
      .sort()
      .join(','),
    BEEUNI_SECRETS_REVISION: String(grants.revision),
  };
};

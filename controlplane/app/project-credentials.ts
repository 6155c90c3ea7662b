// The Secrets that a project refers to: whether they are there, and the credentials of its repository.
// Must not know Kubernetes or git; no value is in any message. Source: 10-kubernetes §2, condition CredentialsReady.
import type { ProjectFact, SyncRequest } from '#schema/wire/sync.ts';
import type { GitCredentials } from '../git/credentials.ts';
import type { SecretAnswer } from '../kubernetes/secrets.ts';
import type { ParseGitCredentials, ReadSecret } from './project-ports.ts';

type SyncedCredentials = ProjectFact['credentials'];

/** What was read. `git` is absent when the repository's own Secret cannot be used. */
export type ReadCredentialsResult = Readonly<{ synced: SyncedCredentials; git: GitCredentials | undefined }>;

const wrong = (reason: SyncedCredentials['reason'], message: string): SyncedCredentials => ({
  reason,
  message: message.slice(0, 1024),
});

const problemOf = (answer: Exclude<SecretAnswer, { kind: 'found' }>): SyncedCredentials =>
  wrong(answer.kind === 'not-found' ? 'SecretNotFound' : 'AccessDenied', answer.message);

/** Looks at every Secret that the request names, each once. Errors: UnavailableError `api_server_unavailable`. */
export const readProjectCredentials = async (
  namespace: string,
  request: Pick<SyncRequest, 'repository' | 'secrets'>,
  readSecret: ReadSecret,
  parseGitCredentials: ParseGitCredentials,
): Promise<ReadCredentialsResult> => {
  const answers = new Map<string, SecretAnswer>();
  const read = async (name: string): Promise<SecretAnswer> => {
    const known = answers.get(name);
    if (known !== undefined) return known;
    const answer = await readSecret(namespace, name);
    answers.set(name, answer);
    return answer;
  };
  const problems: SyncedCredentials[] = [];
  let git: GitCredentials | undefined = { kind: 'none' };
  const { credentialsSecretName, url } = request.repository;
  if (credentialsSecretName !== null) {
    const answer = await read(credentialsSecretName);
    if (answer.kind !== 'found') {
      problems.push(problemOf(answer));
      git = undefined;
    } else {
      const verdict = parseGitCredentials(answer.secret.data, url);
      git = verdict.ok ? verdict.credentials : undefined;
      if (!verdict.ok) problems.push(wrong(verdict.reason, `Secret ${credentialsSecretName}: ${verdict.message}`));
    }
  }
  for (const { secretName, key, env } of request.secrets) {
    const answer = await read(secretName);
    if (answer.kind !== 'found') problems.push(problemOf(answer));
    else if (answer.secret.data[key] === undefined) {
      problems.push(wrong('KeyMissing', `Secret ${secretName} has no key ${key}, which spec.secrets names for ${env}`));
    }
  }
  const [first] = problems;
  if (first !== undefined) return { synced: first, git };
  const isNeeded = credentialsSecretName !== null || request.secrets.length > 0;
  return { synced: { reason: isNeeded ? 'Found' : 'NotNeeded', message: '' }, git };
};

// Why a remote could not be used, from what git said. Pure. git has no codes for this, only words in a fixed language.
// Must not know projects. Source: 10-kubernetes §2, condition RepositoryReady.
import type { ProjectFact } from '#schema/wire/sync.ts';
import type { GitCut } from './run.ts';

/** Reasons of RepositoryReady that are failures. */
export type RepositoryFailure = Exclude<ProjectFact['repository']['reason'], 'Synced' | 'Syncing'>;

/** A failure with a sentence for people; never a credential in it. */
export type RepositoryProblem = Readonly<{ reason: RepositoryFailure; message: string }>;

type Rule = Readonly<{ pattern: RegExp; reason: RepositoryFailure }>;

/** First match wins. */
const RULES: readonly Rule[] = [
  {
    pattern: /Host key verification failed|No .* host key is known|REMOTE HOST IDENTIFICATION HAS CHANGED/i,
    reason: 'HostKeyUnknown',
  },
  {
    pattern:
      /SSL certificate problem|server certificate verification failed|certificate subject name|SSL: no alternative certificate|certificate verify failed/i,
    reason: 'CertificateUnknown',
  },
  {
    pattern:
      /Authentication failed|could not read (Username|Password)|terminal prompts disabled|Permission denied|returned error: 40[13]|Invalid username or (password|token)|invalid credentials|error in libcrypto|Load key/i,
    reason: 'AuthFailed',
  },
  {
    pattern:
      /repository .* not found|Repository not found|does not appear to be a git repository|returned error: (404|410)|not valid: is this a git repository|unable to update url base from redirection|returned error: 30\d/i,
    reason: 'NotFound',
  },
  { pattern: /Operation too slow|Connection timed out|Operation timed out|timed out/i, reason: 'TimedOut' },
  {
    pattern:
      /Could not resolve host|Failed to connect|Couldn't connect|Connection refused|Connection reset|No route to host|Network is unreachable|Could not resolve proxy|Empty reply|returned error: 5\d\d|unexpected disconnect|early EOF|the remote end hung up|RPC failed|SSL_ERROR|gnutls|OpenSSL|unable to access/i,
    reason: 'Unreachable',
  },
];

/** Host of a repository URL or of `user@host:path`, for messages and rules; in lower case, without port. */
export const repositoryHost = (url: string): string => {
  const scp = /^[^/@\s]+@([^:/\s]+):/.exec(url);
  if (scp?.[1] !== undefined && !url.includes('://')) return scp[1].toLowerCase();
  return URL.canParse(url) ? new URL(url).hostname.toLowerCase().replace(/^\[|\]$/g, '') : '';
};

const SENTENCES: Readonly<Record<RepositoryFailure, (host: string) => string>> = {
  Unreachable: (host) => `the host ${host} did not answer or broke the connection`,
  NotFound: (host) => `${host} knows no repository at this URL, or answers with a redirect; use the final URL`,
  AuthFailed: (host) =>
    `${host} refuses the credentials, or asks for some and spec.repository.credentialsSecretRef gives none`,
  BranchNotFound: () => 'the repository has no such branch',
  HostKeyUnknown: (host) => `the host key of ${host} is not in known_hosts of the credentials Secret`,
  CertificateUnknown: (host) => `the TLS certificate of ${host} is signed by no trusted authority`,
  HostNotAllowed: (host) => `the installation does not allow the host ${host}`,
  TooLarge: () => 'the repository is larger than the installation allows',
  TimedOut: (host) => `${host} did not finish within the time limit`,
};

/** The detail that helps with a connection: git's own line, without URLs and user names. */
const detailOf = (stderr: string): string => {
  const line = stderr.split('\n').findLast((text) => /^(fatal|error|ssh|curl)/i.test(text.trim()));
  const cleaned = (line ?? '')
    .replace(/[a-z][a-z0-9+.-]*:\/\/[^\s']*/gi, 'the repository')
    .replace(/\S+@\S+/g, 'the repository')
    .replace(/[^\x20-\x7e]/g, '')
    .trim()
    .slice(0, 200);
  return cleaned === '' ? '' : ` (${cleaned})`;
};

/** The problem of one reason. */
export const problemOf = (reason: RepositoryFailure, url: string, detail = ''): RepositoryProblem => ({
  reason,
  message: `${SENTENCES[reason](repositoryHost(url))}${detail}`,
});

/** The problem behind a failed run that spoke to a remote; undefined when the remote is not to blame, as far as git says. */
export const remoteProblem = (
  run: Readonly<{ stderr: string; cut: GitCut | undefined }>,
  url: string,
): RepositoryProblem | undefined => {
  if (run.cut === 'timed_out') return problemOf('TimedOut', url);
  if (run.cut === 'too_large') return problemOf('TooLarge', url);
  const rule = RULES.find(({ pattern }) => pattern.test(run.stderr));
  if (rule === undefined) return undefined;
  return problemOf(rule.reason, url, rule.reason === 'Unreachable' ? detailOf(run.stderr) : '');
};

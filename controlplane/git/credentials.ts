// Credentials of a remote: read from a Secret's data, and lent to one git run through files that only it can read.
// They are in no argument and no environment; the files are gone when the run ends. Must not know projects. Source: D9.
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/** What git proves itself with. */
export type GitCredentials =
  | Readonly<{ kind: 'none' }>
  | Readonly<{ kind: 'basic'; username: string; password: string }>
  | Readonly<{ kind: 'ssh'; privateKey: string; knownHosts: string }>;

/** Credentials, or why the Secret holds none that fit the URL. The message names keys, never values. */
export type CredentialsVerdict =
  | Readonly<{ ok: true; credentials: GitCredentials }>
  | Readonly<{ ok: false; reason: 'KeyMissing' | 'TypeUnsupported'; message: string }>;

/** User name for a bare token; the hosts that look at it take this one. */
const TOKEN_USER = 'x-access-token';

const isSsh = (url: string): boolean => url.startsWith('ssh://') || !url.includes('://');

/** Reads the data of a credentials Secret for a URL: `username`+`password`, `token`, or `ssh-privatekey`(+`known_hosts`). */
export const parseCredentials = (data: Readonly<Record<string, Buffer>>, url: string): CredentialsVerdict => {
  const value = (key: string): string | undefined => {
    const text = data[key]?.toString('utf8');
    return text === undefined || text.trim() === '' ? undefined : text;
  };
  const line = (key: string): string | undefined => value(key)?.trim();
  const privateKey = value('ssh-privatekey');
  if (isSsh(url)) {
    if (privateKey === undefined) {
      return { ok: false, reason: 'KeyMissing', message: 'an ssh repository needs the key ssh-privatekey' };
    }
    return {
      ok: true,
      credentials: { kind: 'ssh', privateKey: `${privateKey.trimEnd()}\n`, knownHosts: value('known_hosts') ?? '' },
    };
  }
  const password = line('token') ?? line('password');
  if (password === undefined) {
    return privateKey === undefined
      ? { ok: false, reason: 'KeyMissing', message: 'the Secret needs username and password, or token' }
      : {
          ok: false,
          reason: 'TypeUnsupported',
          message: 'an ssh key does not fit an http repository; use token, or username and password',
        };
  }
  if (/[\r\n\0]/.test(password) || /[\r\n\0]/.test(line('username') ?? '')) {
    return { ok: false, reason: 'TypeUnsupported', message: 'username, password and token must be one line each' };
  }
  return { ok: true, credentials: { kind: 'basic', username: line('username') ?? TOKEN_USER, password } };
};

/** The program that git asks. It answers from files beside it, and only what git asks for by name. */
const ASKPASS = `#!/bin/sh
here="\${0%/*}"
case "$1" in
  Username*) exec cat "$here/username" ;;
  Password*) exec cat "$here/password" ;;
esac
exit 1
`;

const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

/** Runs `work` with an environment that lets git use the credentials; `folder` is where the files are put meanwhile. */
export const withCredentials = async <T>(
  credentials: GitCredentials,
  folder: string,
  work: (env: Readonly<Record<string, string>>) => Promise<T>,
): Promise<T> => {
  if (credentials.kind === 'none') return work({});
  const directory = await mkdtemp(join(folder, 'credentials-'));
  const put = (name: string, text: string, mode = 0o600): Promise<void> =>
    writeFile(join(directory, name), text, { mode, flag: 'wx' });
  try {
    if (credentials.kind === 'basic') {
      await put('username', credentials.username);
      await put('password', credentials.password);
      await put('askpass', ASKPASS, 0o700);
      return await work({ GIT_ASKPASS: join(directory, 'askpass') });
    }
    await put('key', credentials.privateKey);
    await put('known_hosts', credentials.knownHosts);
    const command = [
      'ssh -F /dev/null -o BatchMode=yes -o IdentitiesOnly=yes -o StrictHostKeyChecking=yes',
      '-o GlobalKnownHostsFile=/dev/null -o UpdateHostKeys=no -o ConnectTimeout=20 -o ServerAliveInterval=20',
      '-o ForwardAgent=no -o ClearAllForwardings=yes -o PermitLocalCommand=no -o ProxyCommand=none',
      `-o UserKnownHostsFile=${quoted(join(directory, 'known_hosts'))} -i ${quoted(join(directory, 'key'))}`,
    ].join(' ');
    return await work({ GIT_SSH_COMMAND: command, GIT_SSH_VARIANT: 'ssh' });
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
};

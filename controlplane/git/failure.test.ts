// Reasons from git's words, and hosts that may be used.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { remoteProblem, repositoryHost } from './failure.ts';
import { type HostRule, hostProblem } from './host-rule.ts';

const reason = (stderr: string): string | undefined =>
  remoteProblem({ stderr, cut: undefined }, 'https://git.example.com/a.git')?.reason;

test('what git and ssh say of a remote has one reason each', () => {
  const said: readonly (readonly [string, string])[] = [
    ["fatal: could not read Username for 'https://github.com': terminal prompts disabled", 'AuthFailed'],
    ["fatal: Authentication failed for 'https://git.example.com/a.git/'", 'AuthFailed'],
    ['fatal: unable to access: The requested URL returned error: 403', 'AuthFailed'],
    ['git@github.com: Permission denied (publickey).\nfatal: Could not read from remote repository.', 'AuthFailed'],
    ["fatal: repository 'https://git.example.com/a.git/' not found", 'NotFound'],
    ['ERROR: Repository not found.\nfatal: Could not read from remote repository.', 'NotFound'],
    ['fatal: unable to access: The requested URL returned error: 301', 'NotFound'],
    ['Host key verification failed.\nfatal: Could not read from remote repository.', 'HostKeyUnknown'],
    ['fatal: unable to access: SSL certificate problem: self-signed certificate', 'CertificateUnknown'],
    [
      'fatal: unable to access: server certificate verification failed. CAfile: none CRLfile: none',
      'CertificateUnknown',
    ],
    ['fatal: unable to access: Could not resolve host: git.example.com', 'Unreachable'],
    ['fatal: unable to access: Failed to connect to git.example.com port 443: Connection refused', 'Unreachable'],
    ['ssh: connect to host git.example.com port 22: Connection timed out', 'TimedOut'],
    ['error: RPC failed; curl 28 Operation too slow. Less than 100 bytes/sec transferred', 'TimedOut'],
  ];
  for (const [stderr, expected] of said) assert.equal(reason(stderr), expected, stderr);
});

test('words that are not about the remote blame nobody, so that the mirror is made again', () => {
  for (const stderr of [
    '',
    'fatal: bad object refs/heads/main',
    'error: object file is empty',
    'fatal: not a git repository',
  ]) {
    assert.equal(reason(stderr), undefined, stderr);
  }
});

test('a detail of a message holds no URL, no user and no line break', () => {
  const problem = remoteProblem(
    {
      stderr: "fatal: unable to access 'https://u:secret-canary@git.example.com/a.git/': Failed to connect",
      cut: undefined,
    },
    'https://git.example.com/a.git',
  );
  assert.equal(/canary|\n/.test(problem?.message ?? ''), false);
  assert.match(problem?.message ?? '', /git\.example\.com did not answer/);
});

test('the host of every form of URL is found', () => {
  assert.equal(repositoryHost('https://Git.Example.com:8443/a.git'), 'git.example.com');
  assert.equal(repositoryHost('ssh://git@git.example.com:22/a.git'), 'git.example.com');
  assert.equal(repositoryHost('git@git.example.com:a/b.git'), 'git.example.com');
  assert.equal(repositoryHost('nonsense'), '');
});

test('only http, https and ssh to hosts that the installation allows go through', () => {
  const rule = { allowedHosts: ['git.example.com', '*.corp.example'], insecureHosts: ['git.demo.svc'] };
  const open: HostRule = { allowedHosts: [], insecureHosts: ['git.demo.svc'] };
  const refused = (url: string, with_ = open): boolean => hostProblem(url, with_) !== undefined;
  for (const url of [
    'https://x.example/a.git',
    'ssh://git@x.example/a.git',
    'git@x.example:a.git',
    'http://git.demo.svc:3000/a.git',
  ]) {
    assert.equal(refused(url), false, url);
  }
  for (const url of [
    'http://x.example/a.git',
    'file:///etc',
    '/etc',
    'ext::sh -c id',
    'git://x.example/a',
    '-oProxyCommand=id',
    'git@-x:a',
    'https://u:p@x.example/a',
    'https://x.example/a b',
    '',
  ]) {
    assert.equal(refused(url), true, url);
  }
  assert.equal(refused('https://git.example.com/a.git', rule), false);
  assert.equal(refused('https://a.corp.example/a.git', rule), false);
  assert.equal(refused('https://corp.example.evil.example/a.git', rule), true);
});

// What is said of a failure, and what to do: true for where server and token come from, and for the code of the error.
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { test } from 'node:test';
import { type BeeuniError, ForbiddenError, LimitError, UnauthenticatedError, UnavailableError } from '#base/errors.ts';
import { runCommand } from '#test/support/command-line.ts';
import { type Access, accessHint } from './connection/hints.ts';
import { failureOf } from './failure.ts';

const refused = new UnauthenticatedError('the token is not valid');
const away = new UnavailableError('control_plane_unavailable', 'the control plane could not be reached');
const url = { kind: 'url', url: 'https://b.example' } as const;
const variable = { kind: 'environment', name: 'BEEUNI_TOKEN' } as const;
const forwarded = { kind: 'port-forward', context: 'kind', namespace: 'apps', service: 'b', port: 8080 } as const;
const context = { kind: 'kube-context', context: 'kind' } as const;
const account = { kind: 'service-account', context: 'kind', namespace: 'team', name: 'ada' } as const;

for (const [name, access, error, hint] of [
  ['a token of a variable', { token: variable }, refused, /^the token is that of BEEUNI_TOKEN: set another one$/],
  ['one that hides a login', { token: variable, isStored: true }, refused, /unset it to use your login/],
  [
    'a token of another variable',
    { token: { ...variable, name: 'CI' }, isStored: true },
    refused,
    /of CI: set another one$/,
  ],
  ['a token of a kube context', { token: context }, refused, /kube context kind: log in to that cluster again/],
  ['a token of an account', { token: account }, refused, /--context kind -n team get serviceaccount ada/],
  ['a server of a variable', { serverFrom: 'variable' }, away, /^BEEUNI_SERVER names https:\/\/b\.example/],
  ['a server of an option', { serverFrom: 'option' }, away, /^--server names https:\/\/b\.example/],
  ['a server of a login', {}, away, /^your login names https:\/\/b\.example; log in to another/],
  ['a server behind kubectl', { server: forwarded }, away, /kubectl --context kind -n apps get pods/],
  ['an error of the work itself', {}, new LimitError('rate_limited', 'slow down'), undefined],
] satisfies [string, Partial<Access>, BeeuniError, RegExp | undefined][]) {
  test(`${name} gets a hint that can help`, () => {
    const base: Access = { server: url, token: context, serverFrom: 'login', isStored: false };
    const said = accessHint({ ...base, ...access }, error);
    if (hint === undefined) assert.equal(said, undefined);
    else assert.match(said ?? '', hint);
  });
}

for (const [error, hint] of [
  [new ForbiddenError('forbidden', 'bob may not get /v1/workspace/providers'), /ClusterRole beeuni-workspace-viewer/],
  [new ForbiddenError('forbidden', 'bob may not create sessions.beeuni.dev in namespace a'), /in this namespace/],
  [new ForbiddenError('forbidden', 'bob may not list sessions.beeuni.dev'), /for all namespaces/],
  [new LimitError('file_too_large', 'x'), /^$/],
  [new LimitError('budget_reached', 'x'), /raise the budget/],
  [new LimitError('rate_limited', 'x'), /wait/],
  [new UnavailableError('sandbox_unreachable', 'x'), /^$/],
  [new UnavailableError('provider_auth_failed', 'x'), /beeuni providers check/],
  [new UnavailableError('database_unavailable', 'x'), /try again/],
] as const) {
  test(`the hint of ${error.code} (${error.message}) is one that can help`, () => {
    const [, said = ''] = failureOf(error).lines;
    assert.match(said.trim(), hint);
  });
}

test('who is not logged in is told what is missing', async () => {
  for (const [env, said] of [
    [{}, /you are not logged in[^]*set BEEUNI_SERVER and BEEUNI_TOKEN/],
    [{ BEEUNI_SERVER: 'https://b.example' }, /no token for https:\/\/b\.example[^]*set BEEUNI_TOKEN too/],
    [{ BEEUNI_TOKEN: 'x' }, /no server is named[^]*set BEEUNI_SERVER too/],
    [{ BEEUNI_TOKEN: '', BEEUNI_SERVER: '' }, /you are not logged in/],
    [{ BEEUNI_TOKEN: 'x', BEEUNI_SERVER: 'http://b.example' }, /in the clear[^]*BEEUNI_ALLOW_HTTP=1/],
  ] as const) {
    const { code, err } = await runCommand(['projects', 'ls'], { env });
    assert.match(err, said);
    assert.ok(code === 3 || code === 2);
  }
});

test('a token that is refused names the variable that it comes from', async () => {
  const server = createServer((_request, response) => {
    response.writeHead(401, { 'content-type': 'application/json' });
    response.end('{"error":{"code":"unauthenticated","message":"the token is not valid","requestId":"r"}}');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const port = (server.address() as { port: number }).port;
  const env = { BEEUNI_SERVER: `http://127.0.0.1:${port}`, BEEUNI_TOKEN: 'x' };
  const { err } = await runCommand(['projects', 'ls'], { env });
  server.close();
  assert.match(err, /the token is that of BEEUNI_TOKEN: set another one/);
});

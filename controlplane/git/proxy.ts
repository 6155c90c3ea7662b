// The git front of the sandbox: smart HTTP, fetches from the mirror, pushes by rule to the upstream and then the mirror.
// Credentials are added on the upstream side only. Must not know how a caller is proven. Source: 20-control-plane §6, A203.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { pipeline as pipelineWithCallback } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip } from 'node:zlib';
import {
  BeeuniError,
  ForbiddenError,
  InvalidError,
  LimitError,
  NotFoundError,
  UnavailableError,
} from '#base/errors.ts';
import type { Logger } from '#base/log.ts';
import type { SandboxIdentity } from '../app/ports.ts';
import type { GitCredentials } from './credentials.ts';
import type { RepositoryProblem } from './failure.ts';
import type { Mirrors, RepositoryTarget } from './mirror.ts';
import { FLUSH, PktLineError, pktLine, readSection } from './pkt-line.ts';
import { runPush } from './push.ts';
import { type PushRule, parsePushRequest, refusalOf, reportLines } from './push-rule.ts';
import type { Git } from './run.ts';

/** One call from a sandbox. */
export type GitCall = Readonly<{
  identity: SandboxIdentity;
  requestId: string;
  /** Fires when the client left before the answer was finished. */
  signal: AbortSignal;
  request: IncomingMessage;
  response: ServerResponse;
}>;

/** The repository of a project as it was last synced; undefined when there was no sync yet. */
export type FindRepository = (projectUid: string) => Promise<RepositoryTarget | undefined>;
/** Credentials of the repository, read now. Errors: ForbiddenError, UnavailableError. */
export type ReadCredentials = (projectUid: string) => Promise<GitCredentials>;
/** What the session may push; undefined when the session is gone. */
export type FindPushRule = (sessionUid: string) => PushRule | undefined;

/** The proxy's ports. Units: bytes, milliseconds. */
export type GitProxyPorts = Readonly<{
  git: Git;
  mirrors: Mirrors;
  /** Does work whose signal fires, and which ends with an error, once the session may do nothing any more. */
  whileAllowed: (
    identity: SandboxIdentity,
    signal: AbortSignal,
    work: (signal: AbortSignal) => Promise<void>,
  ) => Promise<void>;
  findRepository: FindRepository;
  readCredentials: ReadCredentials;
  findPushRule: FindPushRule;
  /** Folder for short-lived files, on the disk of the mirrors. */
  folder: string;
  /** How old the mirror may be when a client looks at it; see MIRROR_FRESH_MS. */
  freshMs: number;
  maxPushBytes: number;
  timeoutMs: number;
  log: Logger;
}>;

/** The handlers. Errors before the head: BeeuniError. */
export type GitProxy = Readonly<{
  infoRefs: (call: GitCall) => Promise<void>;
  uploadPack: (call: GitCall) => Promise<void>;
  receivePack: (call: GitCall) => Promise<void>;
}>;

/** How old the mirror may be when a client looks at it, if nothing else is said. Units: milliseconds. */
export const MIRROR_FRESH_MS = 10_000;
const MAX_FETCH_REQUEST_BYTES = 16_777_216;
const MAX_COMMAND_BYTES = 65_536;
const BAND_BYTES = 65_000;
const PUSH_CAPABILITIES = 'report-status delete-refs side-band-64k ofs-delta quiet agent=beeuni';

const headers = (type: string): Record<string, string> => ({
  'content-type': type,
  'cache-control': 'no-cache, max-age=0, must-revalidate',
});

/** The body without its compression, cut off above `maxBytes`. */
const bodyOf = (request: IncomingMessage, maxBytes: number): AsyncIterable<Buffer> => {
  const encoding = request.headers['content-encoding'] ?? 'identity';
  if (encoding !== 'identity' && encoding !== 'gzip' && encoding !== 'x-gzip') {
    throw new InvalidError('unsupported_media_type', 'a git request is plain or gzip');
  }
  return (async function* () {
    let bytes = 0;
    try {
      for await (const part of encoding === 'identity' ? request : unzipped(request)) {
        bytes += part.length;
        if (bytes > maxBytes) throw new InvalidError('body_too_large', 'the git request is above its limit');
        yield part;
      }
    } catch (error) {
      if (error instanceof BeeuniError) throw error;
      throw new InvalidError('invalid_request', 'the git request ended too early or is damaged', { cause: error });
    }
  })();
};

/** The request through gunzip; a client that leaves ends both. */
const unzipped = (request: IncomingMessage): AsyncIterable<Buffer> => {
  const gunzip = createGunzip();
  pipelineWithCallback(request, gunzip, () => undefined);
  return gunzip;
};

const demandType = (request: IncomingMessage, service: string): void => {
  if (request.headers['content-type'] !== `application/x-git-${service}-request`) {
    throw new InvalidError('unsupported_media_type', `the content type must be application/x-git-${service}-request`);
  }
};

/** The version that the client asks for; only what git itself sends. */
const protocolOf = (request: IncomingMessage): string =>
  /^version=[012]$/.test(String(request.headers['git-protocol'])) ? String(request.headers['git-protocol']) : '';

/** A problem of the remote as an error of a call. */
export const repositoryError = ({ reason, message }: RepositoryProblem): BeeuniError => {
  switch (reason) {
    case 'NotFound':
      return new NotFoundError('repository_not_found', message);
    case 'BranchNotFound':
      return new NotFoundError('branch_not_found', message);
    case 'AuthFailed':
      return new ForbiddenError('repository_auth_failed', message);
    case 'HostKeyUnknown':
      return new ForbiddenError('host_key_unknown', message);
    case 'CertificateUnknown':
      return new ForbiddenError('certificate_unknown', message);
    case 'HostNotAllowed':
      return new ForbiddenError('host_not_allowed', message);
    case 'TooLarge':
      return new LimitError('repository_too_large', message);
    case 'TimedOut':
      return new UnavailableError('repository_timed_out', message, { retryAfterMs: 5_000 });
    case 'Unreachable':
      return new UnavailableError('repository_unreachable', message, { retryAfterMs: 5_000 });
  }
};

/** Makes the handlers. */
export const makeGitProxy = (ports: GitProxyPorts): GitProxy => {
  const { git, mirrors } = ports;

  const targetOf = async (projectUid: string): Promise<RepositoryTarget> => {
    const target = await ports.findRepository(projectUid);
    if (target === undefined)
      throw new UnavailableError('not_ready', 'the project has not been synced yet', { retryAfterMs: 2_000 });
    return target;
  };

  /** The mirror, fetched if it is old; an old one serves when the upstream is away. */
  const mirrorOf = async (projectUid: string): Promise<string> => {
    const target = await targetOf(projectUid);
    const synced = await mirrors.ensureFresh(target, () => ports.readCredentials(projectUid), ports.freshMs);
    const path = await mirrors.find(projectUid);
    if (path !== undefined) return path;
    throw synced.ok
      ? new UnavailableError('repository_unreachable', 'the mirror of the repository is being made; try again')
      : repositoryError(synced.problem);
  };

  const infoRefs = async ({ identity, request, response }: GitCall): Promise<void> => {
    const service = new URL(request.url ?? '/', 'http://localhost').searchParams.get('service');
    if (service === 'git-upload-pack') {
      const path = await mirrorOf(identity.projectUid);
      const protocol = protocolOf(request);
      const listed = await git.run({
        args: ['upload-pack', '--stateless-rpc', '--http-backend-info-refs', path],
        env: protocol === '' ? {} : { GIT_PROTOCOL: protocol },
        timeoutMs: ports.timeoutMs,
        maxOutputBytes: 67_108_864,
      });
      if (!listed.ok) throw damaged(identity, listed.stderr);
      response.writeHead(200, headers('application/x-git-upload-pack-advertisement'));
      if (protocol !== 'version=2') response.write(Buffer.concat([pktLine('# service=git-upload-pack\n'), FLUSH]));
      response.end(listed.stdout);
      return;
    }
    if (service !== 'git-receive-pack')
      throw new InvalidError('invalid_request', 'service must be git-upload-pack or git-receive-pack');
    const path = await mirrorOf(identity.projectUid);
    const listed = await git.run({
      args: ['--git-dir', path, 'for-each-ref', '--format=%(objectname) %(refname)', 'refs/heads/', 'refs/tags/'],
      timeoutMs: ports.timeoutMs,
      maxOutputBytes: 67_108_864,
    });
    if (!listed.ok) throw damaged(identity, listed.stderr);
    const refs = listed.stdout.toString('utf8').split('\n').filter(Boolean);
    const shown = refs.length > 0 ? refs : [`${'0'.repeat(40)} capabilities^{}`];
    const lines = shown.map((ref, at) => pktLine(at === 0 ? `${ref}\0${PUSH_CAPABILITIES}\n` : `${ref}\n`));
    response.writeHead(200, headers('application/x-git-receive-pack-advertisement'));
    response.end(Buffer.concat([pktLine('# service=git-receive-pack\n'), FLUSH, ...lines, FLUSH]));
  };

  const damaged = (identity: SandboxIdentity, stderr: string): UnavailableError => {
    mirrors.distrust(identity.projectUid);
    return new UnavailableError(
      'repository_unreachable',
      'the mirror of the repository is being made again; try again',
      {
        detail: stderr.slice(0, 500),
        retryAfterMs: 2_000,
      },
    );
  };

  const uploadPack = async ({ identity, request, response, signal }: GitCall): Promise<void> => {
    demandType(request, 'upload-pack');
    const path = (await mirrors.find(identity.projectUid)) ?? (await mirrorOf(identity.projectUid));
    const body = bodyOf(request, MAX_FETCH_REQUEST_BYTES);
    const protocol = protocolOf(request);
    const child = git.open({
      args: ['upload-pack', '--stateless-rpc', path],
      env: protocol === '' ? {} : { GIT_PROTOCOL: protocol },
      timeoutMs: ports.timeoutMs,
      signal,
    });
    response.writeHead(200, headers('application/x-git-upload-pack-result'));
    try {
      await Promise.all([pipeline(body, child.stdin), pipeline(child.stdout, response)]);
    } finally {
      child.kill();
    }
    const result = await child.done;
    // A client that has all it wants ends the run early, so only words of damage count.
    if (/bad object|corrupt|unable to read|missing (blob|tree|commit)/i.test(result.stderr))
      mirrors.distrust(identity.projectUid);
  };

  const receivePack = async ({ identity, request, response, signal, requestId }: GitCall): Promise<void> => {
    demandType(request, 'receive-pack');
    const rule = ports.findPushRule(identity.sessionUid);
    if (rule === undefined) throw new NotFoundError('session_not_found', 'the session of this push is gone');
    let section: Awaited<ReturnType<typeof readSection>>;
    try {
      section = await readSection(bodyOf(request, ports.maxPushBytes + MAX_COMMAND_BYTES), MAX_COMMAND_BYTES);
    } catch (error) {
      if (error instanceof PktLineError) throw new InvalidError('invalid_request', error.message, { cause: error });
      throw error;
    }
    const push = parsePushRequest(section.lines);
    if (push === undefined) throw new InvalidError('invalid_request', 'the push has a line that is no command');
    const answer = (refusals: ReadonlyMap<string, string>): void => {
      response.writeHead(200, headers('application/x-git-receive-pack-result'));
      response.end(reportBody(push.capabilities, reportLines(push.commands, refusals)));
    };
    // Before a large push git asks with an empty one whether it may.
    if (push.commands.length === 0) {
      response.writeHead(200, headers('application/x-git-receive-pack-result'));
      response.end();
      return;
    }
    const refusals = new Map<string, string>();
    for (const command of push.commands) {
      const refusal = refusalOf(command, rule);
      if (refusal !== undefined) refusals.set(command.ref, refusal);
    }
    const own = push.commands.find((command) => !refusals.has(command.ref));
    if (own === undefined || push.commands.filter((command) => command.ref === own.ref).length > 1) {
      for await (const part of section.rest) void part;
      ports.log.info('a push was refused', { session: identity.sessionUid, requestId });
      return answer(
        own === undefined ? refusals : new Map(push.commands.map(({ ref }) => [ref, 'a branch is named twice'])),
      );
    }
    const target = await targetOf(identity.projectUid);
    const path = await mirrorOf(identity.projectUid);
    const credentials = await ports.readCredentials(identity.projectUid);
    const refusal = await mirrors.withLock(identity.projectUid, () =>
      runPush(git, {
        mirror: path,
        folder: ports.folder,
        url: target.url,
        credentials,
        command: own,
        rule,
        pack: section.rest,
        maxBytes: ports.maxPushBytes,
        timeoutMs: ports.timeoutMs,
        signal,
      }),
    );
    // What was not read must be, or the client sees a broken connection instead of the report.
    for await (const part of section.rest) void part;
    if (refusal !== undefined) refusals.set(own.ref, refusal);
    ports.log.info(refusal === undefined ? 'a push went through' : 'a push was refused', {
      session: identity.sessionUid,
      requestId,
    });
    answer(refusals);
  };

  const asRunning =
    (handler: (call: GitCall) => Promise<void>) =>
    (call: GitCall): Promise<void> =>
      ports.whileAllowed(call.identity, call.signal, (signal) => handler({ ...call, signal }));
  return { infoRefs, uploadPack: asRunning(uploadPack), receivePack: asRunning(receivePack) };
};

/** The report as the client wants it: plain, or in the side band that it asked for. */
const reportBody = (capabilities: ReadonlySet<string>, lines: readonly string[]): Buffer => {
  if (!capabilities.has('report-status')) return FLUSH;
  const report = Buffer.concat([...lines.map((line) => pktLine(line)), FLUSH]);
  if (!capabilities.has('side-band-64k')) return report;
  const bands: Buffer[] = [];
  for (let at = 0; at < report.length; at += BAND_BYTES) {
    bands.push(pktLine(Buffer.concat([Buffer.of(1), report.subarray(at, at + BAND_BYTES)])));
  }
  return Buffer.concat([...bands, FLUSH]);
};

// The git proxy on the sandbox listener: smart HTTP of git itself, so bodies have no schema here.
// Source: 20-control-plane §6, A203.
import { z } from 'zod';
import { defineRoute } from '../define-route.ts';

/** Path of the repository on the sandbox listener: `gitPath` of the claim. */
export const GIT_PATH = '/sandbox/v1/git/repo.git';

const route = (operationId: string, method: 'GET' | 'POST', last: string, summary: string) =>
  defineRoute({
    operationId,
    listener: 'sandbox',
    method,
    path: `${GIT_PATH}/${last}`,
    summary,
    auth: { kind: 'sandbox' },
    responses: { 200: z.unknown() },
  });

/** `GET …/info/refs?service=git-upload-pack|git-receive-pack`. */
export const gitInfoRefsRoute = route('gitInfoRefs', 'GET', 'info/refs', 'List the refs of the project repository');
/** `POST …/git-upload-pack`: fetch and clone. */
export const gitUploadPackRoute = route(
  'gitUploadPack',
  'POST',
  'git-upload-pack',
  'Fetch from the project repository',
);
/** `POST …/git-receive-pack`: push of exactly the session's branch. */
export const gitReceivePackRoute = route('gitReceivePack', 'POST', 'git-receive-pack', 'Push the session branch');

// Mounts the git proxy on the sandbox listener. Must not know git; the handlers do.
import { mountRaw } from '#base/http/raw-route.ts';
import type { HttpServer } from '#base/http/server.ts';
import { callerOf } from '#controlplane/app/caller.ts';
import type { Route } from '#schema/define-route.ts';
import { gitInfoRefsRoute, gitReceivePackRoute, gitUploadPackRoute } from '#schema/wire/git.ts';
import type { GitCall, GitProxy } from '../git/proxy.ts';
import type { Guard } from './handler.ts';

/** Serves `…/info/refs`, `…/git-upload-pack` and `…/git-receive-pack`. */
export const mountGit = (server: HttpServer, proxy: GitProxy, guard: Guard): void => {
  const serve = (route: Route, handler: (call: GitCall) => Promise<void>): void => {
    mountRaw(
      server,
      {
        route,
        handler: ({ caller, requestId, signal, request, response }) =>
          handler({ identity: callerOf(caller, 'sandbox'), requestId, signal, request, response }),
      },
      guard,
    );
  };
  serve(gitInfoRefsRoute, proxy.infoRefs);
  serve(gitUploadPackRoute, proxy.uploadPack);
  serve(gitReceivePackRoute, proxy.receivePack);
};

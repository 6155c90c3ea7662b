// What a person does when the control plane does not answer or does not take the token: it depends on where both come from.
// Pure. Must not know how either is reached.
import type { BeeuniError } from '#base/errors.ts';
import type { Server, TokenSource } from './config-file.ts';

/** What a call uses. `serverFrom`: what named the server. `isStored`: there is a login besides what variables say. */
export type Access = Readonly<{
  server: Server;
  token: TokenSource;
  serverFrom: 'option' | 'variable' | 'login';
  isStored: boolean;
}>;

/** How to get a token that is one for Beeuni. */
export const TOKEN_WAYS = 'give a service account that may use Beeuni: beeuni login --service-account NAMESPACE/NAME';

const tokenHint = ({ token, isStored }: Access): string => {
  switch (token.kind) {
    case 'environment':
      return isStored && token.name === 'BEEUNI_TOKEN'
        ? 'the token is that of BEEUNI_TOKEN: set another one, or unset it to use your login'
        : `the token is that of ${token.name}: set another one`;
    case 'service-account':
      return `see kubectl --context ${token.context} -n ${token.namespace} get serviceaccount ${token.name}, or log in again: beeuni login`;
    case 'kube-context':
      return `the token is that of the kube context ${token.context}: log in to that cluster again, or ${TOKEN_WAYS}`;
  }
};

const serverHint = ({ server, serverFrom }: Access): string => {
  if (server.kind === 'port-forward') {
    return `see kubectl --context ${server.context} -n ${server.namespace} get pods, or log in to another server: beeuni login`;
  }
  switch (serverFrom) {
    case 'option':
      return `--server names ${server.url}: is that the address?`;
    case 'variable':
      return `BEEUNI_SERVER names ${server.url}: is that the address?`;
    case 'login':
      return `your login names ${server.url}; log in to another server: beeuni login`;
  }
};

/** The hint for an error of a call; undefined where the connection has no part in it. */
export const accessHint = (access: Access, error: BeeuniError): string | undefined => {
  if (error.group === 'unauthenticated') return tokenHint(access);
  return error.code === 'control_plane_unavailable' ? serverHint(access) : undefined;
};

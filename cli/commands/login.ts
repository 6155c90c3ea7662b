// `beeuni login`: finds the control plane of the current kube context and a way to a token, tries both, and stores the way.
// No token is stored. Source: docs/decisions/0038.
import { asBeeuniError } from '#base/errors.ts';
import { createClient } from '#base/http/client.ts';
import { listProjectsRoute } from '#schema/rest/projects.ts';
import { defineCommand } from '../command.ts';
import { readConfig, type Server, type TokenSource, writeConfig } from '../connection/config-file.ts';
import { makeGetToken } from '../connection/credential.ts';
import { type Kubectl, makeKubectl } from '../connection/kubectl.ts';
import { serverUrl } from '../connection/server-url.ts';
import { CommandError, EXIT, usageError } from '../failure.ts';

const PORT = 8080;
const SELECTOR = 'app.kubernetes.io/part-of=beeuni,app.kubernetes.io/component=control-plane';

const contextOf = async (kubectl: Kubectl, given: string | undefined): Promise<string> => {
  if (given !== undefined) return given;
  const current = await kubectl.run('config', 'current-context').catch((error: unknown) => {
    if (error instanceof CommandError && error.exitCode !== EXIT.unavailable) throw error;
    return '';
  });
  if (current.trim() !== '') return current.trim();
  throw new CommandError(
    EXIT.failed,
    'there is no current kube context',
    'choose one: kubectl config use-context NAME; or name the server: beeuni login --server URL',
  );
};

const namespaceOf = async (kubectl: Kubectl, context: string): Promise<string> => {
  const path = 'jsonpath={.contexts[0].context.namespace}';
  const text = await kubectl.run('--context', context, 'config', 'view', '--minify', '--output', path);
  return text.trim() || 'default';
};

/** The Service of the control plane: the one that was named, the one that carries its labels, or the usual one. */
const findServer = async (kubectl: Kubectl, context: string, given: string | undefined): Promise<Server> => {
  const [namespace = 'beeuni-system', service = 'beeuni-control-plane'] = given?.split('/') ?? [];
  const usual: Server = { kind: 'port-forward', context, namespace, service, port: PORT };
  if (given !== undefined) return usual;
  const path = 'jsonpath={range .items[*]}{.metadata.namespace}/{.metadata.name}{"\\n"}{end}';
  const words = ['get', 'services', '--all-namespaces', '--selector', SELECTOR, '--output', path];
  const text = await kubectl.run('--context', context, ...words).catch(() => '');
  const found = text.split('\n').filter((line) => line.includes('/'));
  if (found.length > 1) {
    throw new CommandError(
      EXIT.failed,
      `there are ${found.length} control planes in this cluster: ${found.join(', ')}`,
      'name one: beeuni login --service NAMESPACE/NAME',
    );
  }
  const [only] = found;
  if (only === undefined) return usual;
  return { ...usual, namespace: only.split('/')[0] ?? namespace, service: only.split('/')[1] ?? service };
};

const tokenSource = (
  context: string | undefined,
  account: string | undefined,
  variable: string | undefined,
): TokenSource => {
  if (variable !== undefined) return { kind: 'environment', name: variable };
  if (account === undefined) {
    if (context !== undefined) return { kind: 'kube-context', context };
    return { kind: 'environment', name: 'BEEUNI_TOKEN' };
  }
  const [namespace, name] = account.split('/');
  if (context === undefined || !namespace || !name) {
    throw usageError('--service-account takes NAMESPACE/NAME', 'for example beeuni login --service-account team/ada');
  }
  return { kind: 'service-account', context, namespace, name };
};

/** See the file. */
export const command = defineCommand({
  summary: 'connect to a control plane with the current kube context',
  options: {
    context: { summary: 'kube context in place of the current one', value: 'NAME' },
    server: { summary: 'address of the control plane, when it has one of its own', value: 'URL' },
    service: { summary: 'Service of the control plane; found by its labels otherwise', value: 'NAMESPACE/NAME' },
    'service-account': { summary: 'use short-lived tokens of this account', value: 'NAMESPACE/NAME' },
    'token-variable': { summary: 'take the token from this environment variable', value: 'NAME' },
    namespace: {
      summary: 'namespace of projects and sessions; that of the context otherwise',
      value: 'NAME',
      short: 'n',
    },
    'allow-http': { summary: 'send the token to an http:// address of another machine' },
  },
  details: [
    'Without --server kubectl forwards a port to the control plane for each call. Without --service-account the token is the one that the kube context itself uses: a bearer token or a credential plug-in. A client certificate is no token.',
    'What is stored, readable by you alone: where the server is and how to get a token. Never a token.',
  ],
  examples: [
    'beeuni login --service-account beeuni-demo/demo-user -n beeuni-demo',
    'beeuni login --server https://beeuni.example.com --token-variable CI_TOKEN',
  ],
  run: async ({ options, io, note }) => {
    const kubectl = makeKubectl(io);
    try {
      const address =
        options.server === undefined
          ? undefined
          : serverUrl(options.server, options['allow-http'], 'log in with --allow-http');
      const needsContext = address === undefined || options['token-variable'] === undefined;
      const wantsContext = options.context !== undefined || options['service-account'] !== undefined;
      const context =
        needsContext && (address === undefined || wantsContext || io.env['BEEUNI_TOKEN'] === undefined)
          ? await contextOf(kubectl, options.context)
          : undefined;
      const token = tokenSource(context, options['service-account'], options['token-variable']);
      const server: Server =
        address !== undefined
          ? { kind: 'url', url: address }
          : await findServer(kubectl, context ?? '', options.service);
      const namespace = options.namespace ?? (context === undefined ? 'default' : await namespaceOf(kubectl, context));

      const [baseUrl, bearer] = await Promise.all([
        server.kind === 'url' ? server.url : kubectl.forward(server).then(({ url }) => url),
        makeGetToken(token, kubectl, io)(),
      ]);
      const client = createClient({
        baseUrl,
        token: () => bearer,
        peer: 'the control plane',
        unreachable: 'control_plane_unavailable',
      });
      try {
        await client.call(listProjectsRoute, { params: { namespace }, query: { limit: 1 } });
      } catch (error) {
        if (asBeeuniError(error)?.code !== 'forbidden') throw error;
        note(`note: you may not list projects in namespace ${namespace}; choose another with --namespace`);
      }
      const before = readConfig(io);
      const kept = before === undefined ? { folders: {} } : { project: before.project, folders: before.folders };
      const path = writeConfig(io, { version: 1, server, token, namespace, ...kept });
      const where = server.kind === 'url' ? server.url : `${server.namespace}/${server.service} of ${server.context}`;
      note(`logged in to ${where}, namespace ${namespace} (${path})`);
      return undefined;
    } finally {
      kubectl.close();
    }
  },
});

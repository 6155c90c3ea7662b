// `make up`: from a fresh machine to an agent's pushed branch. Every step looks first and changes only what must change.
import { existsSync, readFileSync } from 'node:fs';
import { basename, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { ensureImages } from './images.ts';
import { ensureKubectlHelm } from './kubectl-helm.ts';
import { type ChosenCluster, chooseCluster } from './up/cluster-choice.ts';
import { installChart } from './up/install.ts';
import { type Kubectl, makeKubectl } from './up/kubectl.ts';
import { pushRepository, repositoryProblem, sampleRepository } from './up/repository.ts';
import { waitFor } from './up/run-program.ts';
import {
  demoServices,
  demoUser,
  MODEL_ANNOTATION,
  NAMES,
  projectNameFor,
  sampleProject,
  sampleSession,
} from './up/sample-objects.ts';
import { type Api, makeApi, watchTurn } from './up/watch-session.ts';

const HELP = `Usage: node tools/up.ts [--repo <url or path>] [--until cluster|images|install] [--prompt <text>]

Starts a cluster, builds the images, installs the chart, and runs a sample session until its branch is pushed.
  --repo    a git repository to work on: a URL that the cluster can reach, or a path on this machine
  --prompt  what the agent is asked to do
  --until   stop after this step
Environment: BEEUNI_USE_CONTEXT=1 with BEEUNI_REGISTRY (use the current kube context), MODEL_BASE_URL, MODEL_API_KEY,
MODEL_ID (a real model; without them a scripted one answers), GIT_TOKEN (credentials for --repo <url>).`;

const refuse = (words: string): never => {
  console.error(`make up: ${words}\n\n${HELP}`);
  process.exit(2);
};
const readOptions = () => {
  try {
    return parseArgs({
      options: {
        repo: { type: 'string' },
        until: { type: 'string' },
        prompt: { type: 'string' },
        help: { type: 'boolean', default: false },
      },
    }).values;
  } catch (error) {
    return refuse(error instanceof Error ? error.message : String(error));
  }
};
const options = readOptions();
if (options.help) {
  console.log(HELP);
  process.exit(0);
}
if (options.until !== undefined && !['cluster', 'images', 'install'].includes(options.until))
  refuse(`--until takes cluster, images or install, not '${options.until}'`);
const repoProblem = await repositoryProblem(options.repo);
if (repoProblem !== undefined) refuse(repoProblem);

const startedAt = performance.now();
const seconds = (): string => `${((performance.now() - startedAt) / 1000).toFixed(1).padStart(6)} s`;
const log = (line: string): void => console.log(`${seconds()}  ${line}`);
const step = (title: string): void => console.log(`\n${seconds()}  == ${title}`);

const model = (() => {
  const baseUrl = process.env['MODEL_BASE_URL'];
  const id = process.env['MODEL_ID'];
  if (baseUrl === undefined && id === undefined)
    return {
      scripted: true,
      provider: 'scripted',
      id: 'demo-large',
      baseUrl: `http://${NAMES.modelHost}:${NAMES.modelPort}/v1`,
      key: 'demo',
    };
  if (baseUrl === undefined || id === undefined)
    return refuse('give both MODEL_BASE_URL and MODEL_ID, or neither for the scripted model');
  if (!URL.canParse(baseUrl) || !/^https?:$/.test(new URL(baseUrl).protocol))
    return refuse(`MODEL_BASE_URL must be an http or https URL, not '${baseUrl}'`);
  return { scripted: false, provider: 'model', id, baseUrl, key: process.env['MODEL_API_KEY'] };
})();

type Session = {
  metadata: { uid: string; annotations?: Record<string, string> };
  spec: { prompt?: string };
  status?: {
    phase?: string;
    workspace?: { branch?: string; commit?: string };
    lastTurn?: { outcome: string };
    conditions?: { type: string; status: string; reason: string; message: string }[];
  };
};
type Project = Session;

const condition = (object: Session | undefined, type: string) =>
  object?.status?.conditions?.find((candidate) => candidate.type === type);

const userApi = async (kubectl: Kubectl): Promise<{ api: Api; stop: () => void }> => {
  const forward = await kubectl.forward(NAMES.controlPlaneService, NAMES.systemNamespace, 8080);
  let token: Promise<string> | undefined;
  const fetchToken = (): Promise<string> => {
    token ??= kubectl
      .run('create', 'token', NAMES.user, '-n', NAMES.namespace, '--duration', '1h')
      .then((text) => text.trim());
    return token;
  };
  return { api: makeApi(forward.url, fetchToken), stop: forward.stop };
};

const registerProvider = async (api: Api): Promise<void> => {
  const path = `/v1/workspace/providers/${model.provider}`;
  const known = await api
    .get<{ base_url: string; models: { id: string }[] }>(path)
    .catch((error: unknown) => (String(error).includes('provider_not_found') ? undefined : Promise.reject(error)));
  const same = known?.base_url === model.baseUrl && known.models.some(({ id }) => id === model.id);
  if (same && model.scripted) {
    log('model: the scripted demo model, registered already');
    return;
  }
  await api.send('PUT', path, {
    kind: 'openai-compatible',
    base_url: model.baseUrl,
    ...(model.key === undefined ? {} : { api_key: model.key }),
    models: [{ id: model.id }],
  });
  log(
    model.scripted
      ? `model: the scripted demo model (give MODEL_BASE_URL, MODEL_API_KEY and MODEL_ID for a real one)`
      : `model: ${model.id} at ${model.baseUrl}`,
  );
};

const repositoryOf = async (
  kubectl: Kubectl,
): Promise<{ name: string; url: string; secret: string | undefined; prompt: string }> => {
  const prompt = options.prompt ?? 'Add a file HELLO.md that says "Hello from Beeuni", and commit it.';
  const given = options.repo;
  if (given !== undefined && !existsSync(given)) {
    const name = projectNameFor(given);
    const token = process.env['GIT_TOKEN'];
    if (token !== undefined)
      await kubectl.apply([
        {
          apiVersion: 'v1',
          kind: 'Secret',
          metadata: { name: `${name}-git`, namespace: NAMES.namespace },
          stringData: { token },
        },
      ]);
    return { name, url: given, secret: token === undefined ? undefined : `${name}-git`, prompt };
  }
  const path = given === undefined ? await sampleRepository() : resolve(given);
  const name = given === undefined ? 'sample' : projectNameFor(basename(path));
  const forward = await kubectl.forward('git', NAMES.servicesNamespace, NAMES.gitPort);
  try {
    const pushed = await pushRepository(path, `${forward.url}/${name}.git`, name);
    log(pushed);
  } finally {
    forward.stop();
  }
  return { name, url: `http://${NAMES.gitHost}:${NAMES.gitPort}/${name}.git`, secret: undefined, prompt };
};

const explainMissingManifest = (name: string): void => {
  console.log(`
The repository of project '${name}' has no beeuni.yaml, so no session can start. Add these two files to its default
branch and run this again:

--- beeuni.yaml
${readFileSync(new URL('../examples/repository/beeuni.yaml', import.meta.url), 'utf8').trim()}

--- agents/dev.md
${readFileSync(new URL('../examples/repository/agents/dev.md', import.meta.url), 'utf8').trim()}
`);
};

/** The first session name that is free, or whose session was asked the same of the same model. */
const sessionFor = async (
  kubectl: Kubectl,
  repository: { name: string; prompt: string },
  modelName: string,
): Promise<{ name: string; before: Session | undefined }> => {
  const first = repository.name === 'sample' ? 'hello' : `hello-${repository.name}`.slice(0, 42).replace(/-+$/, '');
  for (let count = 1; ; count += 1) {
    const name = count === 1 ? first : `${first}-${count}`;
    const before = await kubectl.get<Session>('session.beeuni.dev', name, NAMES.namespace);
    if (before === undefined) return { name, before };
    const isSameModel = (before.metadata.annotations?.[MODEL_ANNOTATION] ?? modelName) === modelName;
    if (before.spec.prompt === repository.prompt && isSameModel) return { name, before };
  }
};

const runSample = async (cluster: ChosenCluster, kubectl: Kubectl, kubectlProgram: string): Promise<void> => {
  step('demo');
  const repository = await repositoryOf(kubectl);
  const { api, stop } = await userApi(kubectl);
  try {
    await registerProvider(api);
    await kubectl.apply(
      [sampleProject(repository.name, repository.url, `${model.provider}/${model.id}`, repository.secret)],
      'beeuni-up',
    );
    let lastProject: Project | undefined;
    const ready = await waitFor(
      `project ${repository.name}`,
      async () => {
        lastProject = await kubectl.get<Project>('project.beeuni.dev', repository.name, NAMES.namespace);
        const manifest = condition(lastProject, 'ManifestValid');
        const at = condition(lastProject, 'Ready');
        if (manifest?.status === 'False') return manifest;
        return at?.status === 'True' ? at : undefined;
      },
      { timeoutMs: 60_000, describe: () => condition(lastProject, 'Ready')?.message ?? 'it has no status yet' },
    );
    if (ready.type === 'ManifestValid') {
      log(`project ${repository.name}: ManifestValid=False, ${ready.reason}: ${ready.message}`);
      if (ready.reason === 'Missing') explainMissingManifest(repository.name);
      process.exitCode = 1;
      return;
    }
    log(`project ${repository.name} is ready`);

    const modelName = `${model.provider}/${model.id}`;
    const { name, before } = await sessionFor(kubectl, repository, modelName);
    if (before === undefined) {
      await kubectl.apply([sampleSession(name, repository.name, repository.prompt, modelName)], 'beeuni-up');
      log(`session ${name}: ${repository.prompt}`);
    } else log(`session ${name} exists already; showing its work again`);
    const path = `/v1/namespaces/${NAMES.namespace}/sessions/${name}`;
    let lastPhase = '';
    let lastSession: Session | undefined;
    await waitFor(
      `session ${name}`,
      async () => {
        lastSession = await kubectl.get<Session>('session.beeuni.dev', name, NAMES.namespace);
        const at = condition(lastSession, 'Ready');
        const line = `${lastSession?.status?.phase ?? 'Pending'}${at ? ` (${at.reason})` : ''}`;
        if (line !== lastPhase) log(`session ${name}: ${line}`);
        lastPhase = line;
        if (lastSession?.status?.phase === 'Failed') throw new Error(`session ${name} failed: ${at?.message}`);
        return at?.status === 'True' || lastSession?.status?.lastTurn !== undefined ? true : undefined;
      },
      {
        timeoutMs: 300_000,
        describe: () =>
          `${condition(lastSession, 'Ready')?.message ?? 'no status'}; see kubectl describe session ${name} -n ${NAMES.namespace}`,
      },
    );
    const watched = await watchTurn(api, path, (text) => process.stdout.write(text));
    if (watched.outcome !== 'Succeeded' || watched.pushed === undefined) {
      log(`the turn ended ${watched.outcome}${watched.message ? `: ${watched.message}` : ''}, nothing was pushed`);
      process.exitCode = 1;
      return;
    }
    step('done');
    log(`branch ${watched.pushed.branch} was pushed at ${watched.pushed.commit}`);
    if (repository.url.includes(NAMES.gitHost)) await showCommit(kubectl, repository.name, watched.pushed.branch);
    const use = cluster.kubeconfigPath === undefined ? '' : `  export KUBECONFIG=${cluster.kubeconfigPath}\n`;
    console.log(`
What to type next:
${use}  ${kubectlProgram} get beeuni -n ${NAMES.namespace}
  ${kubectlProgram} describe session ${name} -n ${NAMES.namespace}
  export BEEUNI_KUBECTL=${kubectlProgram}
  cli/beeuni login --service-account ${NAMES.namespace}/${NAMES.user} -n ${NAMES.namespace}
  cli/beeuni sessions chat ${name} 'Add a file TODO.md that says "Nothing yet", and commit it.'
  make up REPO=<url or path>      # work on another repository
  make down                       # remove everything`);
  } finally {
    stop();
  }
};

const showCommit = async (kubectl: Kubectl, name: string, branch: string): Promise<void> => {
  const { showBranch } = await import('./up/repository.ts');
  const forward = await kubectl.forward('git', NAMES.servicesNamespace, NAMES.gitPort);
  try {
    console.log(await showBranch(`${forward.url}/${name}.git`, branch));
  } finally {
    forward.stop();
  }
};

const main = async (): Promise<void> => {
  step('cluster');
  const cluster = await chooseCluster(log);
  log(`using ${cluster.description}`);
  if (options.until === 'cluster') return;
  step('images');
  const built = await ensureImages(log);
  const control = await cluster.load(built.control.image, built.control.archive);
  const sandbox = await cluster.load(built.sandbox.image, built.sandbox.archive);
  log(`images are ready: ${control}, ${sandbox}`);
  if (options.until === 'images') return;
  step('install');
  const programs = await ensureKubectlHelm();
  const kubectl = makeKubectl(programs.kubectl, cluster.kubeconfigPath);
  await kubectl.apply(demoServices(control, model.scripted));
  await installChart(kubectl, programs.helm, cluster.kubeconfigPath, { control, sandbox }, log);
  await kubectl.apply(demoUser());
  await kubectl.run('rollout', 'status', 'deployment/git', '-n', NAMES.servicesNamespace, '--timeout=120s');
  log('the chart is installed');
  if (options.until === 'install') return;
  await runSample(cluster, kubectl, programs.kubectl);
};

main().catch((error: unknown) => {
  console.error(`\nmake up stopped: ${error instanceof Error ? error.message : String(error)}`);
  for (let cause = error instanceof Error ? error.cause : undefined; cause instanceof Error; cause = cause.cause)
    console.error(`  because: ${cause.message}`);
  process.exit(1);
});

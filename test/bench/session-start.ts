// A cold session (image present) from create to Ready, split by stage, beside a plain pod of the same image that starts
// OpenCode by hand. Interleaved: floor, ours, ours, floor. `node test/bench/session-start.ts [--rounds 3]`.
// Writes bench/results/session-start.json. Never a test: nothing here asserts a time.
import { mkdirSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import {
  AGENT_FILE,
  type Installation,
  MANIFEST,
  readEvents,
  readyProject,
  startInstallation,
} from '#test/support/installation.ts';
import { median } from '#test/support/statistics.ts';
import { waitFor } from '#tools/up/run-program.ts';
import { NAMES, sampleSession } from '#tools/up/sample-objects.ts';

const { values: options } = parseArgs({ options: { rounds: { type: 'string', default: '3' } } });

type Sample = Readonly<{ totalMs: number; stagesMs: Readonly<Record<string, number>> }>;

// The commands that a person would type: the switches of an offline start, then the first answer of the server, then one
// shell turn that makes it warm, as the daemon does before it says that it is ready.
const BY_HAND = `
export HOME=/home/beeuni XDG_DATA_HOME=/var/lib/beeunid/data XDG_CONFIG_HOME=/home/beeuni/.config XDG_STATE_HOME=/home/beeuni/.state XDG_CACHE_HOME=/home/beeuni/.cache
export OPENCODE_DISABLE_PROJECT_CONFIG=1 OPENCODE_DISABLE_MODELS_FETCH=1 npm_config_offline=true OPENCODE_DISABLE_DEFAULT_PLUGINS=1
export OPENCODE_DISABLE_EXTERNAL_SKILLS=1 OPENCODE_DISABLE_CLAUDE_CODE=1 OPENCODE_DISABLE_AUTOUPDATE=1 OPENCODE_DISABLE_LSP_DOWNLOAD=1 OPENCODE_DISABLE_EMBEDDED_WEB_UI=1
export OPENCODE_SERVER_PASSWORD=floor
export OPENCODE_CONFIG_CONTENT='{"autoupdate":false,"share":"disabled","lsp":false,"formatter":false,"enabled_providers":["floor"],"provider":{"floor":{"npm":"@ai-sdk/openai-compatible","options":{"baseURL":"http://127.0.0.1:9/v1","apiKey":"x"},"models":{"m":{}}}},"model":"floor/m"}'
cd /workspace && git init -q . && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m start
opencode serve --hostname 127.0.0.1 --port 4096 > /tmp/log 2>&1 &
until grep -q listening /tmp/log; do sleep 0.05; done
ask() { curl -s --max-time 20 -u opencode:floor -H 'content-type: application/json' "$@"; }
until ask http://127.0.0.1:4096/agent | grep -q build; do sleep 0.05; done
id=$(ask -X POST -d '{"title":"floor"}' http://127.0.0.1:4096/session | jq -r .id)
ask -X POST -d '{"agent":"build","command":"true"}' http://127.0.0.1:4096/session/$id/shell >/dev/null
touch /tmp/ready; sleep 600
`;

const floorPod = (name: string, image: string, claim: string): readonly object[] => [
  {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name: claim, namespace: NAMES.namespace },
    spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
  },
  {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: NAMES.namespace },
    spec: {
      restartPolicy: 'Never',
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      terminationGracePeriodSeconds: 1,
      securityContext: {
        runAsNonRoot: true,
        runAsUser: 1000,
        runAsGroup: 1000,
        fsGroup: 1000,
        fsGroupChangePolicy: 'OnRootMismatch',
        seccompProfile: { type: 'RuntimeDefault' },
      },
      containers: [
        {
          name: 'floor',
          image,
          imagePullPolicy: 'IfNotPresent',
          command: ['tini', '--', 'bash', '-c', BY_HAND],
          resources: { requests: { cpu: '500m', memory: '640Mi' }, limits: { memory: '1280Mi' } },
          // The kubelet looks every second and says Ready, as a person would see it.
          readinessProbe: { exec: { command: ['test', '-e', '/tmp/ready'] }, periodSeconds: 1 },
          securityContext: {
            allowPrivilegeEscalation: false,
            readOnlyRootFilesystem: true,
            capabilities: { drop: ['ALL'] },
          },
          volumeMounts: [
            { name: 'data', mountPath: '/workspace', subPath: 'workspace' },
            { name: 'data', mountPath: '/var/lib/beeunid', subPath: 'daemon' },
            { name: 'scratch', mountPath: '/home/beeuni', subPath: 'home' },
            { name: 'scratch', mountPath: '/tmp', subPath: 'tmp' },
          ],
        },
      ],
      volumes: [
        { name: 'data', persistentVolumeClaim: { claimName: claim } },
        { name: 'scratch', emptyDir: {} },
      ],
    },
  },
];

type Pod = {
  metadata: { creationTimestamp: string };
  status?: { conditions?: { type: string; status: string }[]; containerStatuses?: { state?: { running?: object } }[] };
};

const measureFloor = async (all: Installation, image: string, round: string): Promise<Sample> => {
  const name = `floor-${round}`;
  const startedAt = performance.now();
  await all.kubectl.apply(floorPod(name, image, name));
  const at: Record<string, number> = {};
  await waitFor(
    name,
    async () => {
      const pod = await all.kubectl.get<Pod>('pod', name, NAMES.namespace);
      const is = (type: string): boolean =>
        pod?.status?.conditions?.some((one) => one.type === type && one.status === 'True') === true;
      if (is('PodScheduled')) at['schedule'] ??= performance.now() - startedAt;
      if (pod?.status?.containerStatuses?.[0]?.state?.running !== undefined)
        at['container'] ??= performance.now() - startedAt;
      return is('Ready') ? pod : undefined;
    },
    { timeoutMs: 120_000, everyMs: 100 },
  );
  const totalMs = performance.now() - startedAt;
  await all.kubectl.run('delete', 'pod,pvc', name, '-n', NAMES.namespace, '--wait=true', '--timeout=60s');
  return { totalMs, stagesMs: at };
};

const measureOurs = async (all: Installation, round: string): Promise<Sample> => {
  const name = `start-${round}`;
  const session = sampleSession(name, 'bench', 'unused') as { spec: Record<string, unknown> };
  const { prompt: _unused, ...spec } = session.spec;
  const startedAt = performance.now();
  await all.kubectl.apply([{ ...session, spec }]);
  const at: Record<string, number> = {};
  await waitFor(
    name,
    async () => {
      const one = await all.kubectl.get<{
        status?: { pod?: { name: string }; conditions?: { type: string; status: string; reason: string }[] };
      }>('session.beeuni.dev', name, NAMES.namespace);
      const now = performance.now() - startedAt;
      if (one?.status?.pod?.name !== undefined) at['pod'] ??= now;
      for (const type of ['SandboxReady', 'WorkspaceReady', 'HarnessReady'])
        if (one?.status?.conditions?.some((condition) => condition.type === type && condition.status === 'True'))
          at[type] ??= now;
      return one?.status?.conditions?.some((condition) => condition.type === 'Ready' && condition.status === 'True')
        ? one
        : undefined;
    },
    { timeoutMs: 120_000, everyMs: 100 },
  );
  const totalMs = performance.now() - startedAt;
  const health = await all.api.get<{ health: { boot_timeline: { stage: string; atMs: number }[] } }>(
    `/v1/namespaces/${NAMES.namespace}/sessions/${name}/health`,
  );
  for (const { stage, atMs } of health.health.boot_timeline) at[`daemon ${stage}`] = atMs;
  const events = await readEvents(all.api, name);
  if (events.some(({ type }) => type === 'session.error')) throw new Error('the session reported an error');
  await all.kubectl.run('delete', 'session', name, '-n', NAMES.namespace, '--timeout=120s');
  return { totalMs, stagesMs: at };
};

const all = await startInstallation((line) => console.log(`# ${line}`));
try {
  await all.push('bench', { 'beeuni.yaml': MANIFEST, 'agents/dev.md': AGENT_FILE });
  await readyProject(all, 'bench');
  const image = (
    await all.kubectl.run(
      'get',
      'configmap',
      'beeuni-installation',
      '-n',
      NAMES.systemNamespace,
      '-o',
      'jsonpath={.data.installation\\.json}',
    )
  ).replace(/^.*"sandbox":\{.*?"image":"([^"]+)".*$/s, '$1');
  const floor: Sample[] = [];
  const ours: Sample[] = [];
  for (let round = 0; round < Number(options.rounds); round += 1) {
    floor.push(await measureFloor(all, image, `${round}a`));
    ours.push(await measureOurs(all, `${round}a`));
    ours.push(await measureOurs(all, `${round}b`));
    floor.push(await measureFloor(all, image, `${round}b`));
    console.log(
      `round ${round + 1}: floor ${floor.slice(-2).map((one) => one.totalMs.toFixed(0))} ms, ours ${ours.slice(-2).map((one) => one.totalMs.toFixed(0))} ms`,
    );
  }
  const pairs = ours.map((one, index) => one.totalMs / (floor[index]?.totalMs ?? Number.NaN));
  const stages = [...new Set(ours.flatMap((one) => Object.keys(one.stagesMs)))];
  console.log(`\nstage of ours                median ms after create`);
  for (const stage of stages)
    console.log(`${stage.padEnd(28)} ${median(ours.map((one) => one.stagesMs[stage] ?? Number.NaN)).toFixed(0)}`);
  console.log(
    `\nfloor median ${median(floor.map((one) => one.totalMs)).toFixed(0)} ms, ours ${median(ours.map((one) => one.totalMs)).toFixed(0)} ms`,
  );
  console.log(
    `ratio median ${median(pairs).toFixed(3)} (range ${Math.min(...pairs).toFixed(3)} to ${Math.max(...pairs).toFixed(3)}), goal 1.25`,
  );
  mkdirSync('bench/results', { recursive: true });
  writeFileSync(
    'bench/results/session-start.json',
    JSON.stringify({ cores: availableParallelism(), node: process.version, floor, ours, pairs }, null, 2),
  );
} finally {
  await all.stop();
}

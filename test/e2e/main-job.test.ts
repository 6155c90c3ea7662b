// The main job on a whole cluster: a Session of a real repository, run by the real OpenCode in a pod, until its branch is
// pushed; what people see through kubectl on the way; and that nothing is left when everything is deleted.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { skipReason } from '#test/cluster/cluster.ts';
import {
  conditionOf,
  HANG_LIMIT_MS,
  type Installation,
  MANIFEST,
  PROVIDER_KEY,
  readEvents,
  readyProject,
  startInstallation,
  waitForEvent,
  waitForResource,
} from '#test/support/installation.ts';
import { runProgram, waitFor } from '#tools/up/run-program.ts';
import { NAMES, sampleSession } from '#tools/up/sample-objects.ts';
import { lifecycleCases } from './main-job-lifecycle-cases.ts';
import { refusalCases } from './main-job-refusal-cases.ts';
import { bash, files, makeScene, type Scene } from './main-job-scene.ts';

describe('main job', { skip: skipReason('node', 'e2e'), timeout: 2_400_000 }, () => {
  let all: Installation;
  let scene: Scene;
  before(async () => {
    all = await startInstallation((line) => console.log(`# ${line}`));
    scene = makeScene(all);
    await all.push('shop', files);
    await readyProject(all, 'shop');
  });
  after(async () => {
    await all?.stop();
  });
  const ready = (name: string) => scene.ready(name);
  const start = (...words: Parameters<Scene['start']>) => scene.start(...words);

  test('a session ends with a pushed commit of the asked content by the configured author on its own branch', async () => {
    await start('hello', 'Add a file HELLO.md that says "Hello from Beeuni", and commit it.');
    const session = await waitForResource(
      all.kubectl,
      'session',
      'hello',
      'a finished turn',
      (one) => one.status?.lastTurn !== undefined,
    );
    assert.equal(session.status?.lastTurn?.outcome, 'Succeeded');
    assert.deepEqual(session.status?.harness, { ...session.status?.harness, id: 'opencode', reason: 'default' });
    const pushed = await waitForEvent(all.api, 'hello', 'pushed', ({ type }) => type === 'workspace.pushed');
    const branch = String(pushed.data['branch']);
    assert.equal(branch, `beeuni/hello-${session.metadata.uid.slice(0, 5)}`);
    const shown = await all.git('shop', async (url) => {
      const folder = (await runProgram('mktemp', ['-d'])).trim();
      await runProgram('git', ['clone', '-q', '--branch', branch, url, folder]);
      const text = await runProgram('git', ['-C', folder, 'show', '--format=%H|%an|%ae', '--name-only', 'HEAD']);
      const content = await runProgram('cat', [`${folder}/HELLO.md`]);
      await runProgram('rm', ['-rf', folder]);
      return `${text}\n---\n${content}`;
    });
    assert.match(shown, new RegExp(`^${pushed.data['commit']}\\|Beeuni\\|agent@beeuni.dev`));
    assert.match(shown, /HELLO\.md\s+---\nHello from Beeuni/);
    const events = await readEvents(all.api, 'hello');
    assert.deepEqual(
      events.map(({ seq }) => seq),
      events.map((_, index) => index + 1),
      'seq is dense',
    );
    assert.equal(events.filter(({ type }) => type === 'turn.ended').length, 1, 'one terminal event');
  });

  test('kubectl get, describe, explain and wait say what a person needs', async () => {
    const list = await all.kubectl.run('get', 'beeuni', '-n', NAMES.namespace);
    assert.match(list, /NAME +READY +HARNESS +MODEL +RELEASE +RUNNING +AGE/);
    assert.match(list, /NAME +HARNESS +PHASE +READY +ACTIVITY +MODEL +AGE/);
    assert.match(list, /session\.beeuni\.dev\/hello +opencode +Running +True +Idle +scripted\/demo-large/);
    await all.kubectl.run('wait', '--for=condition=Ready', 'session/hello', '-n', NAMES.namespace, '--timeout=300s');
    const described = await all.kubectl.run('describe', 'session', 'hello', '-n', NAMES.namespace);
    assert.match(described, /SandboxCreated/);
    assert.ok(
      described.indexOf('Type:                  Ready') < described.indexOf('SpecAccepted'),
      'Ready comes first',
    );
    assert.match(await all.kubectl.run('explain', 'session.spec.mode'), /Interactive stays for further prompts/);
  });

  test('the sandbox has no provider key, git token or Kubernetes token, and reaches the control plane and DNS only', async () => {
    // The key is put together in the sandbox, so that the prompt itself does not hold it.
    const half = Math.floor(PROVIDER_KEY.length / 2);
    const search = [
      `key=$(printf %s%s ${PROVIDER_KEY.slice(0, half)} ${PROVIDER_KEY.slice(half)})`,
      'echo PROBE-START',
      `grep -rls "$key" /workspace /tmp /home /opt/beeuni/config /var/lib/beeunid /etc 2>/dev/null | sed s/^/FOUND-FILE:/`,
      `for p in /proc/[0-9]*; do tr '\\0' '\\n' < $p/environ 2>/dev/null | grep -s "$key" | sed s/^/FOUND-ENV:/; done`,
      'ls /var/run/secrets/kubernetes.io 2>/dev/null | sed s/^/FOUND-KUBERNETES:/',
      'cat /proc/*/cmdline 2>/dev/null | tr "\\0" " " | grep -o "bs_[0-9a-f]*_[A-Za-z0-9_-]*" | sed s/^/FOUND-CREDENTIAL:/',
      'git config -l | grep -iE "token|authorization|password" | sed s/^/FOUND-GIT:/',
      'timeout 3 bash -c "</dev/tcp/$KUBERNETES_SERVICE_HOST/443" 2>/dev/null && echo OPEN:apiserver',
      'timeout 3 bash -c "</dev/tcp/169.254.169.254/80" 2>/dev/null && echo OPEN:metadata',
      `timeout 3 bash -c "</dev/tcp/${NAMES.gitHost}/${NAMES.gitPort}" 2>/dev/null && echo OPEN:git`,
      `timeout 3 bash -c "</dev/tcp/${NAMES.modelHost}/${NAMES.modelPort}" 2>/dev/null && echo OPEN:model`,
      'timeout 3 bash -c "</dev/tcp/1.1.1.1/443" 2>/dev/null && echo OPEN:internet',
      `timeout 3 bash -c "</dev/tcp/${NAMES.controlPlaneService}.${NAMES.systemNamespace}.svc/8081" && echo REACHED:control-plane`,
      `getent hosts ${NAMES.controlPlaneService}.${NAMES.systemNamespace}.svc >/dev/null && echo REACHED:dns`,
      'echo PROBE-END',
    ].join('; ');
    await start('probe', `${bash(`${search}`)}\n@@say looked`);
    const ended = await waitForEvent(
      all.api,
      'probe',
      'the tool output',
      ({ type, data }) =>
        type === 'message.part.updated' &&
        JSON.stringify(data).includes('PROBE-END') &&
        JSON.stringify(data).includes('"completed"'),
    );
    const output = String(
      ((ended.data['part'] as Record<string, unknown>)['state'] as Record<string, unknown>)['output'],
    );
    assert.match(output, /PROBE-START/);
    assert.doesNotMatch(output, /FOUND-/);
    assert.doesNotMatch(output, /OPEN:/);
    assert.match(output, /REACHED:control-plane/);
    assert.match(output, /REACHED:dns/);
    await all.kubectl.run('delete', 'session', 'probe', '-n', NAMES.namespace, '--timeout=300s');
  });

  refusalCases(() => scene);
  lifecycleCases(() => scene);

  test('a Task finishes, its pod goes, and a harness without an adapter makes a session fail by name', async () => {
    await start('task', '@@say nothing to do', { mode: 'Task' });
    await all.kubectl.run('wait', '--for=condition=Finished', 'session/task', '-n', NAMES.namespace, '--timeout=300s');
    const task = await waitForResource(
      all.kubectl,
      'session',
      'task',
      'Succeeded',
      (one) => one.status?.phase === 'Succeeded',
    );
    assert.equal(task.status?.lastTurn?.outcome, 'Succeeded');
    await all.push('beaver', { ...files, 'beeuni.yaml': `${MANIFEST}runtime: beaver\n` });
    await readyProject(all, 'beaver');
    await all.kubectl.apply([sampleSession('beaver', 'beaver', 'hello')]);
    const failed = await waitForResource(
      all.kubectl,
      'session',
      'beaver',
      'a failure',
      (one) => one.status?.failure !== undefined,
    );
    assert.match(failed.status?.failure?.message ?? '', /harness_not_available/);
    assert.equal(failed.status?.harness?.id, 'beaver');
    for (const name of ['task', 'beaver'])
      await all.kubectl.run('delete', 'session', name, '-n', NAMES.namespace, '--timeout=300s');
  });

  test('A6 the flag pi_harness runs Pi, which pushes a commit too; without it the next start runs OpenCode', async () => {
    const flag = (value: boolean): Promise<string> =>
      all.kubectl.run(
        'patch',
        'project.beeuni.dev/shop',
        '-n',
        NAMES.namespace,
        '--type=merge',
        '-p',
        JSON.stringify({ spec: { features: { piHarness: value ? 'Enabled' : 'Disabled' } } }),
      );
    await flag(true);
    await start('with-pi', 'Add a file HELLO.md that says "Hello from Beeuni", and commit it.');
    const pushed = await waitForEvent(all.api, 'with-pi', 'pushed', ({ type }) => type === 'workspace.pushed');
    const session = await ready('with-pi');
    assert.deepEqual(
      { id: session.status?.harness?.id, reason: session.status?.harness?.reason },
      { id: 'pi', reason: 'project-flag' },
    );
    const types = (await readEvents(all.api, 'with-pi')).map(({ type }) => type);
    assert.equal(types.filter((type) => type === 'turn.ended').length, 1, 'one terminal event');
    const content = await all.git('shop', async (url) => {
      const folder = (await runProgram('mktemp', ['-d'])).trim();
      await runProgram('git', ['clone', '-q', '--branch', String(pushed.data['branch']), url, folder]);
      const text = await runProgram('cat', [`${folder}/HELLO.md`]);
      await runProgram('rm', ['-rf', folder]);
      return text;
    });
    assert.equal(content.trim(), 'Hello from Beeuni');
    await flag(false);
    await all.api.send('POST', `/v1/namespaces/${NAMES.namespace}/sessions/with-pi/restart`, {});
    await waitForResource(
      all.kubectl,
      'session',
      'with-pi',
      'OpenCode after the restart',
      (one) => one.status?.harness?.id === 'opencode' && conditionOf(one, 'Ready')?.status === 'True',
    );
    await all.kubectl.run('delete', 'session', 'with-pi', '-n', NAMES.namespace, '--timeout=300s');
  });

  test('deleting sessions, projects and the release leaves nothing behind', async () => {
    assert.match(
      await all.kubectl.run('delete', 'project', 'shop', '-n', NAMES.namespace).then(
        () => assert.fail('a project with sessions was deleted'),
        (error: unknown) => String(error),
      ),
      /project shop has \d+ sessions and deletionPolicy Block/,
    );
    await all.kubectl.run('delete', 'sessions.beeuni.dev', '--all', '-n', NAMES.namespace, '--timeout=300s');
    // The count of Sessions in the Project's status follows within moments; until then the policy still refuses.
    await waitFor(
      'the projects to go',
      () =>
        all.kubectl
          .run('delete', 'projects.beeuni.dev', '--all', '-n', NAMES.namespace, '--timeout=300s')
          .catch(() => undefined),
      { timeoutMs: HANG_LIMIT_MS },
    );
    const left = await waitFor(
      'the namespace to be empty',
      async () => {
        const names = (
          await all.kubectl.run(
            'get',
            'pods,pvc,networkpolicies,sessions.beeuni.dev,projects.beeuni.dev',
            '-n',
            NAMES.namespace,
            '-o',
            'name',
          )
        ).trim();
        return names === '' ? 'empty' : undefined;
      },
      { timeoutMs: HANG_LIMIT_MS },
    );
    assert.equal(left, 'empty');
    await all.helm('uninstall', NAMES.release, '-n', NAMES.systemNamespace, '--wait');
    // Helm waits for what it deletes itself; the pods end within their grace period.
    await waitFor(
      'the release to be gone',
      async () => {
        const kinds = 'deployments,pods,services,networkpolicies';
        const left = await all.kubectl.run('get', kinds, '-n', NAMES.systemNamespace, '-o', 'name');
        return left.trim() === '' ? true : undefined;
      },
      { timeoutMs: HANG_LIMIT_MS },
    );
    assert.match(await all.kubectl.run('get', 'crd', '-o', 'name'), /sessions\.beeuni\.dev/, 'crds.keep keeps them');
  });
});

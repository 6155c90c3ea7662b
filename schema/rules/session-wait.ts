// Why a session runs nothing now, as a sentence and what a person can do about it: the note of a prompt, the words of the command
// line, what a call to the sandbox answers. Pure. It must not know who is told. Source: 10-kubernetes §3, §4.
import { z } from 'zod';

/** What is known of a session: its resource, or the view of it in the REST API. */
export type SeenSession = Readonly<{
  namespace: string;
  name: string;
  spec: Readonly<Record<string, unknown>>;
  status: Readonly<Record<string, unknown>>;
}>;

/** Why nothing runs. `todo`: a command or a deed; undefined where nothing helps but time. `endedBy`: the verb that ends it. */
export type SessionWait = Readonly<{
  says: string;
  todo: string | undefined;
  endedBy: 'start' | 'restart' | undefined;
}>;

// A status may come from a newer installation: what is not understood counts as not said.
const word = z.string().optional().catch(undefined);
const seenSpec = z.object({
  operatingMode: word,
  mode: word,
  projectRef: z.object({ name: z.string() }).catch({ name: '' }),
});
const condition = z.object({ type: z.string(), status: z.string(), reason: z.string(), message: z.string() });
const seenStatus = z.object({
  phase: word,
  suspension: z.object({ reason: word }).optional().catch(undefined),
  conditions: z.array(condition).catch([]),
});

/** Both in one sentence. */
export const waitSentence = ({ says, todo }: SessionWait): string => (todo === undefined ? says : `${says}; ${todo}`);

/** Undefined while the session runs, is on its way, or sleeps until the next prompt. */
export const sessionWait = ({ namespace, name, spec, status }: SeenSession): SessionWait | undefined => {
  const { operatingMode, mode, projectRef } = seenSpec.parse(spec);
  const { phase, suspension, conditions } = seenStatus.parse(status);
  const find = (type: string) => conditions.find((each) => each.type === type);
  const ready = find('Ready');
  const project = projectRef.name;
  const who = `session ${name}`;
  const kubectl = `kubectl -n ${namespace}`;
  const waits = (says: string, todo?: string, endedBy?: SessionWait['endedBy']): SessionWait => ({
    says: `${who} ${says}`,
    todo,
    endedBy,
  });
  const message = ready?.message ?? 'its status says no more';
  const another = 'create another one: beeuni sessions new';

  if (phase === 'Deleting') return waits('is being deleted', another);
  if (phase === 'Succeeded' || phase === 'Expired' || (phase === 'Failed' && mode === 'Task')) {
    return waits(`has ended (${phase})`, another);
  }
  if (operatingMode === 'Suspended') {
    return waits(
      'is suspended on request; prompts run once it is started again',
      `start it: beeuni sessions start ${name}`,
      'start',
    );
  }
  if (suspension?.reason === 'ProjectSuspended') {
    const accepted = find('SpecAccepted');
    if (accepted?.reason === 'ProjectNotFound') return waits(`is suspended: ${accepted.message}`);
    return waits(
      `is suspended with its project ${project}`,
      `resume it: ${kubectl} patch project ${project} --type=merge -p '{"spec":{"operatingMode":"Running"}}'`,
    );
  }
  switch (ready?.reason) {
    case 'BudgetReached':
      return waits(
        `waits: ${message}`,
        `raise the limits: ${kubectl} edit session ${name}, or project ${project}; a budget of a day or month is also over with it`,
      );
    case 'Queued':
      return waits(`is queued: ${message}; it starts by itself as soon as there is room`);
    case 'NotAccepted':
      return waits(`is not accepted: ${message}`, 'it starts by itself once that is put right');
    case 'CoolingDown':
      return waits(`waits after a failure: ${message}`, `try at once: beeuni sessions restart ${name}`, 'restart');
    case 'Failed':
      return waits(`has failed: ${message}`, `try again: beeuni sessions restart ${name}`, 'restart');
    case 'DaemonUnreachable':
    case 'ControlPlaneUnavailable':
    case 'NodeLost':
      return waits(`does not answer: ${message}`);
    default:
      return undefined;
  }
};

/**
 * What a project says of models that cannot be called now; undefined where it says nothing of the kind. The session runs, but
 * its turns may end without an answer. `status` is that of the project.
 */
export const modelsTrouble = (project: string, status: unknown): string | undefined => {
  const { data } = z.object({ conditions: z.array(condition) }).safeParse(status);
  const models = data?.conditions.find(({ type, status: value }) => type === 'ModelsValid' && value === 'False');
  if (models === undefined) return undefined;
  return `project ${project} cannot call all of its models now (${models.reason}): ${models.message}`;
};

// The Kubernetes Events of a Session, from what the status says before and after. Pure; a closed list.
// Never a prompt, an answer, an argument or a secret. Source: 10-kubernetes §3.
import type { EventNote } from '#kube/events.ts';
import type { SessionEventReason } from '#schema/resources/conditions.ts';
import type { SessionStatus } from '#schema/resources/session.ts';
import type { Scene } from './scene.ts';

const note = (type: EventNote['type'], reason: SessionEventReason, action: string, text: string): EventNote => ({
  type,
  reason,
  action,
  note: text,
});

const conditionOf = (status: SessionStatus, type: string) => status.conditions?.find((entry) => entry.type === type);

const startNotes = ({ stored, current }: Scene): EventNote[] => {
  if (current === undefined) return [];
  const notes = [note('Normal', 'SandboxCreated', 'Start', `pod ${current.name} with harness ${current.harness}`)];
  const before = stored.harness?.id;
  if (before !== undefined && before !== current.harness) {
    const why = `${before} before, ${current.harness} now: ${current.harnessReason}`;
    notes.push(note('Normal', 'HarnessChanged', 'Start', why));
  }
  if (stored.pod !== undefined && (stored.observedRestartToken ?? '') !== (current.restartToken ?? '')) {
    notes.push(note('Normal', 'Restarted', 'Restart', `attempt ${current.attempt} answers spec.restartToken`));
  }
  const slept = stored.suspension?.reason;
  if (slept === 'Idle' || slept === 'Budget') notes.push(note('Normal', 'Woken', 'Start', `woken from ${slept}`));
  return notes;
};

/** Notes of the change from the stored status to `next`. */
export const sessionNotes = (scene: Scene, next: SessionStatus): EventNote[] => {
  const { stored, lost } = scene;
  const notes = scene.isNewPod ? startNotes(scene) : [];
  if (next.readyAt !== undefined && next.readyAt !== (scene.isNewPod ? undefined : stored.readyAt)) {
    notes.push(note('Normal', 'Ready', 'Start', `the sandbox takes prompts with ${next.harness?.id ?? 'its harness'}`));
  }
  if (lost !== undefined) {
    const text = `${lost.category}: ${lost.message}`;
    const isDisruption = conditionOf(next, 'Disrupted')?.reason === lost.category;
    notes.push(
      isDisruption ? note('Warning', 'Disrupted', 'Run', text) : note('Warning', 'StartFailed', 'Start', text),
    );
  }
  if (next.phase === 'Suspended' && stored.phase !== 'Suspended') {
    notes.push(note('Normal', 'Suspended', 'Suspend', `suspended: ${next.suspension?.reason ?? ''}`));
  }
  const finished = conditionOf(next, 'Finished');
  if (finished?.status === 'True' && conditionOf(stored, 'Finished')?.status !== 'True') {
    notes.push(note('Normal', 'Finished', 'Finish', `the Session ended ${finished.reason}`));
  }
  const isolated = conditionOf(next, 'NetworkIsolated');
  if (isolated?.status === 'False' && conditionOf(stored, 'NetworkIsolated')?.status !== 'False') {
    notes.push(note('Warning', 'IsolationNotEnforced', 'Start', isolated.message));
  }
  return notes;
};

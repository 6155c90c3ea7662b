// The Kubernetes Events of a Project, from what the status says before and after. Pure; a closed list.
// Source: 10-kubernetes §3.
import type { EventNote } from '#kube/events.ts';
import type { ProjectEventReason } from '#schema/resources/conditions.ts';
import type { ProjectStatus } from '#schema/resources/project.ts';
import { FLAG_FIELDS, unavailableText } from '#schema/rules/effective-flags.ts';
import type { ObservedProject } from './observed.ts';

const note = (type: EventNote['type'], reason: ProjectEventReason, action: string, text: string): EventNote => ({
  type,
  reason,
  action,
  note: text,
});

const conditionOf = (status: ProjectStatus | undefined, type: string) =>
  status?.conditions?.find((entry) => entry.type === type);

/** Notes of the change from the stored status to `next`. */
export const projectNotes = (o: ObservedProject, next: ProjectStatus): EventNote[] => {
  const before = o.project.status;
  const notes: EventNote[] = [];
  const commit = next.repository?.commit;
  if (commit !== undefined && commit !== before?.repository?.commit) {
    notes.push(
      note('Normal', 'Synced', 'Sync', `commit ${commit.slice(0, 12)} of ${next.repository?.defaultBranch ?? ''}`),
    );
  }
  const turnedFalse: readonly (readonly [string, ProjectEventReason])[] = [
    ['ManifestValid', 'ManifestInvalid'],
    ['ModelsValid', 'ModelsInvalid'],
    ['CredentialsReady', 'CredentialsMissing'],
  ];
  for (const [type, reason] of turnedFalse) {
    const now = conditionOf(next, type);
    const then = conditionOf(before, type);
    if (now?.status === 'False' && (then?.status !== 'False' || then.message !== now.message)) {
      notes.push(note('Warning', reason, 'Sync', now.message));
    }
  }
  const release = next.release?.current;
  if (release !== undefined && release !== before?.release?.current) {
    notes.push(note('Normal', 'ReleasePublished', 'Publish', `release ${release.slice(0, 12)}`));
  }
  const blocked = conditionOf(next, 'Ready');
  if (blocked?.reason === 'DeletionBlocked' && conditionOf(before, 'Ready')?.reason !== 'DeletionBlocked') {
    notes.push(note('Warning', 'DeletionBlocked', 'Delete', blocked.message));
  }
  for (const { name, available } of next.features ?? []) {
    const asked = o.project.spec.features[FLAG_FIELDS[name]] === 'Enabled';
    const told = before?.features?.find((flag) => flag.name === name)?.source === 'Unavailable';
    const isNew = before?.observedGeneration !== next.observedGeneration || !told;
    if (asked && !available && isNew) {
      notes.push(note('Warning', 'FeatureUnavailable', 'Sync', unavailableText(name)));
    }
  }
  return notes;
};

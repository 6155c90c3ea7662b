// Names of the Secrets that a Project refers to. Pure. Must not know what is in them.
import type { ProjectSpec } from '#schema/resources/project.ts';

/** Each name once, in alphabetical order. */
export const secretNames = (spec: ProjectSpec): string[] => {
  const names = [
    spec.repository.credentialsSecretRef?.name,
    ...(spec.secrets ?? []).map(({ secretRef }) => secretRef.name),
    ...(spec.providerKeys ?? []).map(({ secretRef }) => secretRef.name),
  ];
  return [...new Set(names.filter((name) => name !== undefined))].sort();
};

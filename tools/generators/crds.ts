// The CustomResourceDefinitions: plain files for GitOps, and one chart template behind `crds.install`.
import { type CustomResourceDefinition, customResourceDefinition } from '#schema/crd.ts';
import type { AnyKind } from '#schema/define-kind.ts';
import { ProjectKind } from '#schema/resources/project.ts';
import { SessionKind } from '#schema/resources/session.ts';
import { GENERATED_YAML_NOTE, type GeneratedFile } from './generated-file.ts';
import { escapedForHelm, yamlText } from './yaml-text.ts';

/** Every kind of ours. */
export const KINDS: readonly AnyKind[] = [ProjectKind, SessionKind] as unknown as readonly AnyKind[];

function plainCrd(kind: AnyKind): string {
  return GENERATED_YAML_NOTE + yamlText(customResourceDefinition(kind));
}

function chartDocument(crd: CustomResourceDefinition): string {
  const { metadata, spec, ...head } = crd;
  return [
    '---\n',
    yamlText(head),
    'metadata:\n',
    `  name: ${metadata.name}\n`,
    '{{- if .Values.crds.keep }}\n',
    '  annotations:\n',
    '    helm.sh/resource-policy: keep\n',
    '{{- end }}\n',
    escapedForHelm(yamlText({ spec })),
  ].join('');
}

function chartTemplate(): string {
  const documents = KINDS.map((kind) => chartDocument(customResourceDefinition(kind)));
  return `${GENERATED_YAML_NOTE}{{- if .Values.crds.install }}\n${documents.join('')}{{- end }}\n`;
}

/** `crds/<plural>.yaml` and `charts/beeuni/templates/crds/crds.generated.yaml`. Source: K31. */
export const crdFiles: readonly GeneratedFile[] = [
  ...KINDS.map((kind) => ({ path: `crds/${kind.plural}.yaml`, text: () => plainCrd(kind) })),
  { path: 'charts/beeuni/templates/crds/crds.generated.yaml', text: chartTemplate },
];

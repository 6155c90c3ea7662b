// The admission policy as a chart template behind `policy.install`; release, accounts and image policy come from Helm.
import { type GuardTerms, guardObjects } from '#schema/resources/policy.ts';
import { GENERATED_YAML_NOTE, type GeneratedFile } from './generated-file.ts';
import { blockYamlText } from './yaml-text.ts';

const account = (which: string) =>
  `system:serviceaccount:{{ .Release.Namespace }}:{{ include "beeuni.${which}ServiceAccount" . }}`;

/** Each term is a Helm expression. The lists become CEL literals: JSON is valid CEL. */
const HELM_TERMS: GuardTerms = {
  policyName: '{{ .Release.Name }}-guard',
  operatorUser: account('operator'),
  controlPlaneUser: account('controlPlane'),
  allowedPrefixes: '{{ .Values.sandbox.imagePolicy.allowedPrefixes | toJson }}',
  requireDigest: '{{ .Values.sandbox.imagePolicy.requireDigest }}',
};

function policyTemplate(): string {
  const documents = guardObjects(HELM_TERMS).map(
    (object) => `---\n${blockYamlText(object, ['expression', 'messageExpression'])}`,
  );
  return `${GENERATED_YAML_NOTE}{{- if .Values.policy.install }}\n${documents.join('')}{{- end }}\n`;
}

/** `charts/beeuni/templates/policy/policy.generated.yaml`. */
export const policyFiles: readonly GeneratedFile[] = [
  { path: 'charts/beeuni/templates/policy/policy.generated.yaml', text: policyTemplate },
];

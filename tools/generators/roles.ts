// The rights of the operator as the chart's roles read them. Source: 10-kubernetes §9, operator/rbac.ts.
import { OPERATOR_RULES } from '#operator/rbac.ts';
import { GENERATED_YAML_NOTE, type GeneratedFile } from './generated-file.ts';
import { yamlText } from './yaml-text.ts';

/** `charts/beeuni/files/operator-rules.generated.yaml`, a list of policy rules. */
export const roleFiles: readonly GeneratedFile[] = [
  {
    path: 'charts/beeuni/files/operator-rules.generated.yaml',
    text: () =>
      GENERATED_YAML_NOTE + yamlText(OPERATOR_RULES.filter(({ resources }) => !resources.includes('secrets'))),
  },
];

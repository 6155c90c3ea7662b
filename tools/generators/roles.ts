// The rights of the operator, and those of people on the parts of a session, as the chart's roles read them.
// Source: 10-kubernetes §9, operator/rbac.ts; D5, schema/rest.
import { SECRET_RULES } from '#operator/project/controller.ts';
import { OPERATOR_RULES } from '#operator/rbac.ts';
import { PUBLIC_ROUTES } from '#schema/rest/index.ts';
import { GENERATED_YAML_NOTE, type GeneratedFile } from './generated-file.ts';
import { yamlText } from './yaml-text.ts';

/** One rule for each virtual subresource of sessions that a public route asks for, with the verbs that the routes ask for. */
const sessionPartRules = () => {
  const verbs = new Map<string, Set<string>>();
  for (const { auth } of PUBLIC_ROUTES) {
    if (auth.kind !== 'resource' || auth.resource !== 'sessions' || auth.subresource === undefined) continue;
    verbs.set(auth.subresource, (verbs.get(auth.subresource) ?? new Set()).add(auth.verb));
  }
  return [...verbs]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([part, asked]) => ({ apiGroups: ['beeuni.dev'], resources: [`sessions/${part}`], verbs: [...asked].sort() }));
};

/** Lists of policy rules: what the operator may do in every watched namespace, to Secrets where it is let, and what editors may do with sessions. */
export const roleFiles: readonly GeneratedFile[] = [
  {
    path: 'charts/beeuni/files/operator-rules.generated.yaml',
    text: () => GENERATED_YAML_NOTE + yamlText(OPERATOR_RULES),
  },
  {
    path: 'charts/beeuni/files/operator-secret-rules.generated.yaml',
    text: () => GENERATED_YAML_NOTE + yamlText(SECRET_RULES),
  },
  {
    path: 'charts/beeuni/files/session-part-rules.generated.yaml',
    text: () => GENERATED_YAML_NOTE + yamlText(sessionPartRules()),
  },
];

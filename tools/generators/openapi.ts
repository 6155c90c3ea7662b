// The OpenAPI document of the public API, from the routes that the control plane mounts.
import { apiDocument } from '#controlplane/http/api-document.ts';
import packageJson from '../../package.json' with { type: 'json' };
import { type GeneratedFile, jsonText } from './generated-file.ts';

/** `docs/reference/openapi.json`. */
export const openApiFiles: readonly GeneratedFile[] = [
  { path: 'docs/reference/openapi.json', text: () => jsonText(apiDocument(packageJson.version)) },
];

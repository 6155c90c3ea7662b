// Certificates, keys and kubeconfig files of one cluster, made with openssl. They live as long as the cluster's folder.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { run } from './process.ts';

/** One certificate to be made. `subject` is in openssl's form, `/O=group/CN=name`; `altNames` as `IP:…` and `DNS:…`. */
export interface CertificateRequest {
  readonly name: string;
  readonly authority: string;
  readonly subject: string;
  readonly usage: 'clientAuth' | 'serverAuth';
  readonly altNames?: readonly string[];
}

const validDays = '30';
const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];

/** Makes `<name>.crt` and `<name>.key` in `dir` for the authorities and all that they sign, and a pair `sa.key`, `sa.pub` for service account tokens. */
export async function makeCertificates(
  dir: string,
  authorities: readonly string[],
  requests: readonly CertificateRequest[],
): Promise<void> {
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  await Promise.all([
    ...authorities.map((name) => makeAuthority(dir, name)),
    run('openssl', ['genrsa', '-out', join(dir, 'sa.key'), '2048']).then(() =>
      run('openssl', ['rsa', '-in', join(dir, 'sa.key'), '-pubout', '-out', join(dir, 'sa.pub')]),
    ),
  ]);
  await Promise.all(requests.map((request) => makeCertificate(dir, request)));
}

async function makeAuthority(dir: string, name: string): Promise<void> {
  const output = ['-keyout', join(dir, `${name}.key`), '-out', join(dir, `${name}.crt`)];
  const extension = ['-addext', 'keyUsage=critical,keyCertSign,cRLSign'];
  await run('openssl', [
    'req',
    '-x509',
    ...newKey,
    '-days',
    validDays,
    '-subj',
    `/CN=${name}`,
    ...output,
    ...extension,
  ]);
}

async function makeCertificate(dir: string, request: CertificateRequest): Promise<void> {
  const signer = ['-CA', join(dir, `${request.authority}.crt`), '-CAkey', join(dir, `${request.authority}.key`)];
  const output = ['-keyout', join(dir, `${request.name}.key`), '-out', join(dir, `${request.name}.crt`)];
  const extensions = [
    'basicConstraints=critical,CA:FALSE',
    'keyUsage=critical,digitalSignature',
    `extendedKeyUsage=${request.usage}`,
    ...(request.altNames ? [`subjectAltName=${request.altNames.join(',')}`] : []),
  ].flatMap((extension) => ['-addext', extension]);
  await run('openssl', [
    'req',
    '-x509',
    ...signer,
    ...newKey,
    '-days',
    validDays,
    '-subj',
    request.subject,
    ...output,
    ...extensions,
  ]);
}

/** Writes a kubeconfig file with everything inside it, readable by its owner only. Certificates are `<certificate>.crt` and `.key` in `dir`. */
export function writeKubeconfig(
  path: string,
  options: { readonly dir: string; readonly certificate: string; readonly url: string; readonly clusterName: string },
): void {
  const { dir, certificate, url, clusterName } = options;
  const inline = (file: string): string => readFileSync(join(dir, file)).toString('base64');
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: clusterName, cluster: { server: url, 'certificate-authority-data': inline('ca.crt') } }],
    users: [
      {
        name: certificate,
        user: {
          'client-certificate-data': inline(`${certificate}.crt`),
          'client-key-data': inline(`${certificate}.key`),
        },
      },
    ],
    contexts: [{ name: clusterName, context: { cluster: clusterName, user: certificate } }],
    'current-context': clusterName,
  };
  // JSON is YAML, and every reader of kubeconfig files takes it.
  writeFileSync(path, `${JSON.stringify(config, undefined, 2)}\n`, { mode: 0o600 });
}

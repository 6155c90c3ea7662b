// Whether the installation lets a repository be on a host. Pure. Source: 10-kubernetes §2, spec.repository.url.
import { problemOf, type RepositoryProblem, repositoryHost } from './failure.ts';

/** What the installation says. `allowedHosts` empty: any host. `insecureHosts`: where http without TLS may be used. */
export type HostRule = Readonly<{ allowedHosts: readonly string[]; insecureHosts: readonly string[] }>;

const names = (host: string, list: readonly string[]): boolean =>
  list.some((entry) => {
    const wanted = entry.toLowerCase().replace(/:\d+$/, '');
    return wanted.startsWith('*.') ? host.endsWith(wanted.slice(1)) : host === wanted;
  });

const FORM = /^((https?|ssh):\/\/[^\s]+|[A-Za-z0-9._-]+@[A-Za-z0-9._-]+:[^/\s-][^\s]*)$/;

/** Why a repository may not be used; undefined when it may. An unreadable URL is refused too. */
export const hostProblem = (url: string, rule: HostRule): RepositoryProblem | undefined => {
  const host = repositoryHost(url);
  if (host === '' || host.startsWith('-') || !FORM.test(url)) return problemOf('HostNotAllowed', url);
  if (/^https?:\/\/[^/]*@/i.test(url)) return problemOf('HostNotAllowed', url, ' with credentials in its URL');
  if (rule.allowedHosts.length > 0 && !names(host, rule.allowedHosts)) return problemOf('HostNotAllowed', url);
  if (/^http:/i.test(url) && !names(host, rule.insecureHosts)) {
    return problemOf('HostNotAllowed', url, ' without TLS; use https');
  }
  return undefined;
};

// Networks in CIDR form: read, compare, and take blocked ranges out. Pure. Must not know policies.
import { parseAddress } from '#schema/rules/provider-address.ts';

/** A network: version, first address as a number, length of the prefix in bits. */
export type Network = Readonly<{ bits: 32 | 128; first: bigint; prefix: number }>;

const numberOf = (bytes: readonly number[]): bigint => bytes.reduce((sum, byte) => sum * 256n + BigInt(byte), 0n);

/** The network that a text names; undefined when it is none, holds an IPv4 address inside IPv6, or has host bits set. */
export const parseCidr = (text: string): Network | undefined => {
  const match = /^([^/]+)\/([0-9]{1,3})$/.exec(text);
  const address = match?.[1];
  if (address === undefined || /[%[]/.test(address)) return undefined;
  const bits = address.includes(':') ? 128 : 32;
  const prefix = Number(match?.[2]);
  const bytes = parseAddress(address);
  if (bytes?.length !== bits / 8 || prefix > bits) return undefined;
  const first = numberOf(bytes);
  const host = BigInt(bits - prefix);
  return (first >> host) << host === first ? { bits, first, prefix } : undefined;
};

/** Whether `inner` lies in `outer` or is the same. */
export const contains = (outer: Network, inner: Network): boolean => {
  if (outer.bits !== inner.bits || outer.prefix > inner.prefix) return false;
  const host = BigInt(outer.bits - outer.prefix);
  return outer.first >> host === inner.first >> host;
};

/** What is never reachable unless an installation allows it by name. Source: 10-kubernetes §7, NetworkPolicy. */
export const BLOCKED_CIDRS: readonly string[] = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '224.0.0.0/4',
  '240.0.0.0/4',
  '::/128',
  '::1/128',
  '64:ff9b::/96',
  'fc00::/7',
  'fe80::/10',
  'ff00::/8',
];

/** What one allowed network comes to: the exceptions inside it, or the blocked range that swallows it. */
export type Reach = Readonly<{ allowed: true; except: readonly string[] } | { allowed: false; blockedBy: string }>;

/** An installation's own ranges beside BLOCKED_CIDRS. */
export type NetworkRules = Readonly<{ allowedPrivateCidrs: readonly string[]; extraBlockedCidrs: readonly string[] }>;

/**
 * What remains of a network after the blocked ranges are taken out. A network inside a blocked range is allowed only if
 * `allowedPrivateCidrs` covers it; the installation's `extraBlockedCidrs` win over that. Source: 10-kubernetes §2, §7.
 */
export const reachOf = (cidr: string, rules: NetworkRules): Reach => {
  const network = parseCidr(cidr);
  if (network === undefined) return { allowed: false, blockedBy: cidr };
  const privately = rules.allowedPrivateCidrs.some((range) => {
    const allowed = parseCidr(range);
    return allowed !== undefined && contains(allowed, network);
  });
  const blocked = [...(privately ? [] : BLOCKED_CIDRS), ...rules.extraBlockedCidrs];
  const except: string[] = [];
  for (const text of blocked) {
    const range = parseCidr(text);
    if (range === undefined) continue;
    if (contains(range, network)) return { allowed: false, blockedBy: text };
    if (contains(network, range) && !except.includes(text)) except.push(text);
  }
  return { allowed: true, except };
};

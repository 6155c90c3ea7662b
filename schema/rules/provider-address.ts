// Which addresses a model provider may have: the decision when a base URL is saved and again at every connection.
// Pure: must not know DNS or sockets; whoever resolves a name asks here about each address. Source: 20-control-plane §4, FF10.

/** An IP address as 4 or 16 bytes; an IPv4 address inside IPv6 is 4 bytes. */
export type AddressBytes = readonly number[];

const parseV4 = (text: string): AddressBytes | undefined => {
  const parts = text.split('.');
  if (parts.length !== 4 || !parts.every((part) => /^(0|[1-9][0-9]{0,2})$/.test(part) && Number(part) < 256))
    return undefined;
  return parts.map(Number);
};

const groupsOf = (text: string): readonly number[] | undefined => {
  if (text === '') return [];
  const groups = text.split(':');
  return groups.every((group) => /^[0-9a-f]{1,4}$/i.test(group))
    ? groups.map((group) => Number.parseInt(group, 16))
    : undefined;
};

const parseV6 = (text: string): AddressBytes | undefined => {
  let plain = text.replace(/%.*$/, '');
  const tail = plain.slice(plain.lastIndexOf(':') + 1);
  if (tail.includes('.')) {
    const v4 = parseV4(tail);
    if (v4 === undefined) return undefined;
    const [a = 0, b = 0, c = 0, d = 0] = v4;
    plain = `${plain.slice(0, -tail.length)}${(a * 256 + b).toString(16)}:${(c * 256 + d).toString(16)}`;
  }
  const halves = plain.split('::');
  if (halves.length > 2) return undefined;
  const left = groupsOf(halves[0] ?? '');
  const right = groupsOf(halves[1] ?? '');
  if (left === undefined || right === undefined) return undefined;
  const missing = 8 - left.length - right.length;
  if (halves.length === 2 ? missing < 1 : missing !== 0) return undefined;
  return [...left, ...Array<number>(missing).fill(0), ...right].flatMap((group) => [group >> 8, group & 255]);
};

const MAPPED = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255];

/** The bytes of an IP address in text form, with or without brackets; undefined for anything else, such as a host name. */
export const parseAddress = (text: string): AddressBytes | undefined => {
  const bare = text.startsWith('[') && text.endsWith(']') ? text.slice(1, -1) : text;
  if (!bare.includes(':')) return parseV4(bare);
  const bytes = parseV6(bare);
  return bytes !== undefined && MAPPED.every((byte, at) => bytes[at] === byte) ? bytes.slice(12) : bytes;
};

type Range = Readonly<{ base: AddressBytes; bits: number }>;

const parseRange = (text: string): Range | undefined => {
  const [address = '', length] = text.split('/');
  const base = parseAddress(address);
  if (base === undefined) return undefined;
  const bits = length === undefined ? base.length * 8 : Number(length);
  return Number.isInteger(bits) && bits >= 0 && bits <= base.length * 8 ? { base, bits } : undefined;
};

const isIn = (address: AddressBytes, { base, bits }: Range): boolean => {
  if (address.length !== base.length) return false;
  for (let at = 0; at * 8 < bits; at += 1) {
    const mask = 255 & (255 << Math.max(0, 8 - (bits - at * 8)));
    if (((address[at] ?? 0) & mask) !== ((base[at] ?? 0) & mask)) return false;
  }
  return true;
};

const ranges = (...texts: readonly string[]): readonly Range[] =>
  texts.map(parseRange).filter((range): range is Range => range !== undefined);

/** IPv4 networks that are not the public internet: this, private, shared, loopback, link-local, test, multicast, reserved. */
const NOT_PUBLIC_V4 = ranges(
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/4',
  '240.0.0.0/4',
);
const PUBLIC_V6 = ranges('2000::/3');
/** Parts of 2000::/3 that carry an IPv4 address or are documentation. */
const NOT_PUBLIC_V6 = ranges('2001::/23', '2001:db8::/32', '2002::/16', '3fff::/20');

/** Whether an address is on the public internet. */
export const isPublicAddress = (address: AddressBytes): boolean =>
  address.length === 4
    ? !NOT_PUBLIC_V4.some((range) => isIn(address, range))
    : PUBLIC_V6.some((range) => isIn(address, range)) && !NOT_PUBLIC_V6.some((range) => isIn(address, range));

const bareHost = (host: string): string =>
  host
    .toLowerCase()
    .replace(/^\[|\]$/g, '')
    .replace(/\.$/, '');

/** Whether the allow list names the host: exactly, or as `*.domain`. */
const namesHost = (host: string, allow: readonly string[]): boolean =>
  allow.some((entry) => {
    const wanted = entry.toLowerCase();
    return wanted.startsWith('*.') ? host.endsWith(wanted.slice(1)) : host === wanted;
  });

const isNamed = (host: string, address: AddressBytes, allow: readonly string[]): boolean =>
  namesHost(host, allow) ||
  allow.some((entry) => {
    const range = parseRange(entry);
    return range !== undefined && isIn(address, range);
  });

/**
 * Whether a connection to `host` may go to `address`: the address is public, or the allow list names the host (exactly
 * or as `*.domain`) or a range that holds the address. An address that cannot be read is refused.
 */
export const mayConnect = (host: string, address: string, allow: readonly string[]): boolean => {
  const bytes = parseAddress(address);
  if (bytes === undefined) return false;
  return isPublicAddress(bytes) || isNamed(bareHost(host), bytes, allow);
};

/**
 * Whether a key may go to a host without encryption: the installation itself names the host, or a range that holds every
 * address of it, so the way there is its own. Source: docs/decisions/0047.
 */
export const mayCarryKey = (host: string, addresses: readonly string[], allow: readonly string[]): boolean =>
  namesHost(bareHost(host), allow) ||
  (addresses.length > 0 &&
    addresses.every((address) => {
      const bytes = parseAddress(address);
      return bytes !== undefined && isNamed(bareHost(host), bytes, allow);
    }));

/** A base URL that may be saved, without a trailing slash; `address` is set when its host is one, `isEncrypted` for https. */
export type BaseUrlVerdict =
  | Readonly<{ ok: true; url: string; host: string; address: string | undefined; isEncrypted: boolean }>
  | Readonly<{ ok: false; message: string }>;

const refuse = (message: string): BaseUrlVerdict => ({ ok: false, message });

/**
 * The verdict on the text of a base URL, before any name is resolved. The URL parser has already turned decimal, octal
 * and hexadecimal addresses into dotted ones. The message is safe to show and does not repeat the text.
 */
export const checkBaseUrl = (text: string, allow: readonly string[]): BaseUrlVerdict => {
  if (!URL.canParse(text)) return refuse('the base URL is not a URL');
  const url = new URL(text);
  if (url.protocol !== 'https:' && url.protocol !== 'http:')
    return refuse('the base URL must begin with https:// or http://');
  if (url.username !== '' || url.password !== '') return refuse('the base URL must not hold credentials; use api_key');
  if (url.search !== '' || url.hash !== '') return refuse('the base URL must have no query and no fragment');
  if (url.port === '0') return refuse('the base URL names port 0, which nothing can listen at');
  const host = bareHost(url.hostname);
  const isEncrypted = url.protocol === 'https:';
  const clean = `${url.origin}${url.pathname.replace(/\/+$/, '')}`;
  const address = parseAddress(host) === undefined ? undefined : host;
  if (address !== undefined) {
    return mayConnect(host, address, allow)
      ? { ok: true, url: clean, host, address, isEncrypted }
      : refuse('the base URL names an address that is not public; the installation can allow its host or range');
  }
  const isLocalName = host === 'localhost' || host.endsWith('.localhost');
  if (isLocalName && !namesHost(host, allow))
    return refuse('the base URL names this machine; the installation can allow its host');
  return { ok: true, url: clean, host, address: undefined, isEncrypted };
};

/** Ports that `fetch` refuses, as what listens there may take a request for something else. Source: the Fetch standard. */
const BLOCKED_PORTS: ReadonlySet<number> = new Set([
  1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104, 109, 110,
  111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514, 515, 526, 530, 531, 532,
  540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061,
  6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080,
]);

/** The port of a URL, when `fetch` refuses it: what is saved must be reachable for checks as well as for calls. */
export const blockedPortOf = (url: string): number | undefined => {
  const port = Number(new URL(url).port);
  return BLOCKED_PORTS.has(port) ? port : undefined;
};

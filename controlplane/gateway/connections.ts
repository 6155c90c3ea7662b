// Connections to one provider that are kept and used again: one call at a time on each, no queue. What undici does for
// everything, done for the one kind of call that the gateway makes, at less than half of its cost.
// Must not know which addresses are allowed or how many calls may be made. Source: G10, G11, docs/decisions/0024.
import { connect as connectPlain, isIP, type LookupFunction, type OnReadOpts, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { type AnswerHeaders, AnswerParser } from './answer-parser.ts';
import { makeTurnEnd } from './turn-end.ts';

/** A call. `headers`: lines with their ends, without host and length. `body`: what follows one another. */
export type UpstreamRequest = Readonly<{ path: string; headers: string; body: readonly Buffer[] }>;

/** Steers a call that was sent. */
export type UpstreamCall = Readonly<{
  /** Ends the call and its connection; `onError` follows unless the call is over. */
  abort: (reason: Error) => void;
  pause: () => void;
  resume: () => void;
}>;

/** What a call brings. After `onEnd` or `onError` nothing follows. */
export type UpstreamHandler = Readonly<{
  onHead: (status: number, headers: AnswerHeaders) => void;
  onBody: (piece: Buffer) => void;
  onEnd: () => void;
  onError: (error: Error) => void;
}>;

/** Where the provider is, and how it is reached. Units: milliseconds. */
export type ConnectionSettings = Readonly<{ url: URL; lookup: LookupFunction; connectTimeoutMs: number }>;

/** The connections to one provider. */
export type Connections = Readonly<{
  send: (request: UpstreamRequest, handler: UpstreamHandler) => UpstreamCall;
  /** Keeps no connection any more; calls that run go on. */
  close: () => void;
  /** Ends everything. */
  destroy: () => void;
}>;

/** How long an idle connection is kept, when the provider names no shorter time. Units: milliseconds. */
const IDLE_MS = 30_000;
/** The provider's own time ends sooner for us, so that no call meets a closing connection. Units: milliseconds. */
const IDLE_MARGIN_MS = 1_000;
/** A body up to this size leaves with its head in one piece. Units: bytes. */
const ONE_PIECE_BYTES = 65_536;
/** Most that is read at once. Units: bytes. */
const READ_BYTES = 65_536;

type Owner = {
  readonly all: Set<Connection>;
  readonly idle: Connection[];
  /** What every connection reads into; what is kept is copied at once. */
  readonly reading: Buffer;
  /** Lets the request of a connection leave at the end of the turn. */
  readonly leaveLater: (connection: Connection) => void;
  isClosed: boolean;
};

/** A copy of the first bytes. */
const headOf = (buffer: Buffer, bytes: number): Buffer => {
  const copy = Buffer.allocUnsafe(bytes);
  buffer.copy(copy, 0, 0, bytes);
  return copy;
};

const timeoutOf = (headers: AnswerHeaders): number => {
  const seconds = /(?:^|[,;\s])timeout=(\d{1,6})/i.exec(headers.get('keep-alive') ?? '')?.[1];
  return seconds === undefined ? IDLE_MS : Math.min(IDLE_MS, Number(seconds) * 1_000 - IDLE_MARGIN_MS);
};

class Connection implements UpstreamCall {
  readonly #owner: Owner;
  readonly #socket: Socket;
  readonly #parser: AnswerParser;
  #handler: UpstreamHandler | undefined;
  /** A request that has not left. */
  #leaving: Buffer | undefined;
  #idleMs = IDLE_MS;
  idleUntilMs = 0;

  constructor(owner: Owner, settings: ConnectionSettings) {
    this.#owner = owner;
    const { url, lookup } = settings;
    const isTls = url.protocol === 'https:';
    const host = url.hostname.replace(/^\[|\]$/g, '');
    const onread: OnReadOpts = {
      buffer: owner.reading,
      callback: (bytes) => {
        this.#read(headOf(owner.reading, bytes));
        return true;
      },
    };
    const address = { host, port: url.port === '' ? (isTls ? 443 : 80) : Number(url.port), lookup, onread };
    const socket = isTls
      ? connectTls({ ...address, ALPNProtocols: ['http/1.1'], ...(isIP(host) === 0 ? { servername: host } : {}) })
      : connectPlain({ ...address, noDelay: true, keepAlive: true });
    this.#socket = socket;
    owner.all.add(this);
    this.#parser = new AnswerParser({
      onHead: (status, headers) => {
        this.#idleMs = timeoutOf(headers);
        this.#handler?.onHead(status, headers);
      },
      onBody: (piece) => this.#handler?.onBody(piece),
      onEnd: (isReusable) => this.#finish(isReusable),
    });
    if (isTls) socket.setNoDelay(true).setKeepAlive(true);
    const late = setTimeout(
      () => socket.destroy(new Error('the provider could not be connected to in time')),
      settings.connectTimeoutMs,
    );
    late.unref();
    socket.once(isTls ? 'secureConnect' : 'connect', () => clearTimeout(late));
    socket.on('end', () => this.#ended());
    socket.on('error', (error) => this.#fail(error));
    socket.on('close', () => {
      clearTimeout(late);
      owner.all.delete(this);
      this.#fail(new Error('the connection to the provider was closed'));
    });
  }

  get isUsable(): boolean {
    return !this.#socket.destroyed && this.#socket.writable && performance.now() < this.idleUntilMs;
  }

  /** `head` ends where the length follows. */
  send(head: Buffer, body: readonly Buffer[], bodyBytes: number, handler: UpstreamHandler): void {
    this.#handler = handler;
    this.#parser.reset();
    const socket = this.#socket;
    const length = `${bodyBytes}\r\n\r\n`;
    if (bodyBytes <= ONE_PIECE_BYTES) {
      const whole = Buffer.allocUnsafe(head.length + length.length + bodyBytes);
      let at = head.copy(whole);
      at += whole.write(length, at, 'latin1');
      for (const part of body) at += part.copy(whole, at);
      this.#leaving = whole;
      this.#owner.leaveLater(this);
      return;
    }
    socket.cork();
    socket.write(head);
    socket.write(length, 'latin1');
    for (const part of body) socket.write(part);
    socket.uncork();
  }

  /** Sends the request that waits for the end of the turn. */
  leave(): void {
    const whole = this.#leaving;
    this.#leaving = undefined;
    if (whole !== undefined && !this.#socket.destroyed) this.#socket.write(whole);
  }

  abort(reason: Error): void {
    if (this.#handler !== undefined) this.#socket.destroy(reason);
  }

  pause(): void {
    if (this.#handler !== undefined) this.#socket.pause();
  }

  resume(): void {
    if (this.#handler !== undefined) this.#socket.resume();
  }

  destroy(): void {
    this.#socket.destroy();
  }

  #read(bytes: Buffer): void {
    // What a provider says when nobody asked is not an answer.
    if (this.#handler === undefined || this.#leaving !== undefined) {
      this.#socket.destroy();
      return;
    }
    try {
      this.#parser.push(bytes);
    } catch (error) {
      this.#socket.destroy(error as Error);
    }
  }

  #ended(): void {
    if (this.#handler === undefined) {
      this.#socket.destroy();
      return;
    }
    try {
      this.#parser.close();
    } catch (error) {
      this.#socket.destroy(error as Error);
    }
  }

  #finish(isReusable: boolean): void {
    const handler = this.#handler;
    this.#handler = undefined;
    const { idle, isClosed } = this.#owner;
    if (isReusable && !isClosed && this.#idleMs > 0 && this.#socket.writableLength === 0) {
      this.#socket.resume();
      this.idleUntilMs = performance.now() + this.#idleMs;
      idle.push(this);
      // The oldest one is the first to be too old.
      if (idle[0]?.isUsable === false) idle.shift()?.destroy();
    } else {
      this.#socket.destroy();
    }
    handler?.onEnd();
  }

  #fail(error: Error): void {
    const handler = this.#handler;
    this.#handler = undefined;
    const at = this.#owner.idle.indexOf(this);
    if (at >= 0) this.#owner.idle.splice(at, 1);
    handler?.onError(error);
  }
}

/** Makes the connections; opens none before the first call. */
export const makeConnections = (settings: ConnectionSettings): Connections => {
  const owner: Owner = {
    all: new Set(),
    idle: [],
    reading: Buffer.allocUnsafeSlow(READ_BYTES),
    leaveLater: makeTurnEnd((connection: Connection) => connection.leave()),
    isClosed: false,
  };
  const host = ` HTTP/1.1\r\nhost: ${settings.url.host}\r\nconnection: keep-alive\r\n`;
  /** The head of the last call; that of the next one is mostly the same. */
  let last = { path: '', headers: '', head: Buffer.alloc(0) };
  return {
    send: ({ path, headers, body }, handler) => {
      let bodyBytes = 0;
      for (const part of body) bodyBytes += part.length;
      if (last.path !== path || last.headers !== headers) {
        last = { path, headers, head: Buffer.from(`POST ${path}${host}${headers}content-length: `, 'latin1') };
      }
      // The last one that came back is the one that the provider is least likely to have closed.
      let connection = owner.idle.pop();
      while (connection !== undefined && !connection.isUsable) {
        connection.destroy();
        connection = owner.idle.pop();
      }
      connection ??= new Connection(owner, settings);
      connection.send(last.head, body, bodyBytes, handler);
      return connection;
    },
    close: () => {
      owner.isClosed = true;
      for (const connection of owner.idle.splice(0)) connection.destroy();
    },
    destroy: () => {
      owner.isClosed = true;
      for (const connection of owner.all) connection.destroy();
    },
  };
};

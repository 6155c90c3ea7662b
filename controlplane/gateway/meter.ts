// What is counted of an answer: tokens as the provider reported them, else an estimate, and what they cost. Pure.
// It must not know how any provider writes them; reported.ts does. Source: 20-control-plane §5, FC1.

/** Tokens as the provider reported them. `promptTokens` includes `cachedTokens`, which were read from a cache. */
export type ReportedUsage = Readonly<{ promptTokens: number; cachedTokens: number; completionTokens: number }>;

/** What was seen of an answer. `isEnded`: it has its terminal marker. `eventTokens`: what the data events of a stream come to by
 * their number and size. */
export type Metered = Readonly<{
  isEnded: boolean;
  hasError: boolean;
  /** A stream that was cut inside a line. */
  isInLine: boolean;
  eventTokens: number;
  bytes: number;
  usage: ReportedUsage | undefined;
  servedModel: string | undefined;
}>;

/** Sees the chunks of one answer as they pass. */
export type Meter = Readonly<{ push: (chunk: Buffer) => void; result: () => Metered }>;

/** Tokens of a call: as reported, or counted from bytes and events when the provider said nothing. */
export const tokensOf = (
  metered: Metered | undefined,
  requestBytes: number,
): ReportedUsage & Readonly<{ estimated: boolean }> => {
  if (metered?.usage !== undefined) return { ...metered.usage, estimated: false };
  if (metered === undefined || metered.bytes === 0) {
    return { promptTokens: 0, cachedTokens: 0, completionTokens: 0, estimated: true };
  }
  const completionTokens = metered.eventTokens > 0 ? metered.eventTokens : Math.ceil(metered.bytes / 4);
  return { promptTokens: Math.ceil(requestBytes / 4), cachedTokens: 0, completionTokens, estimated: true };
};

/** Prices of a model. Units: micro-USD per million tokens; without its own price a cached token costs as any other. */
export type Prices = Readonly<{
  price_input_micro_usd: number;
  price_output_micro_usd: number;
  price_cached_input_micro_usd?: number | undefined;
}>;

/** Cost of tokens, rounded up. Units: micro-USD. */
export const costMicroUsd = (tokens: ReportedUsage, prices: Prices): number => {
  const cached = Math.min(tokens.cachedTokens, tokens.promptTokens);
  return Math.ceil(
    ((tokens.promptTokens - cached) * prices.price_input_micro_usd +
      cached * (prices.price_cached_input_micro_usd ?? prices.price_input_micro_usd) +
      tokens.completionTokens * prices.price_output_micro_usd) /
      1_000_000,
  );
};

/** Output tokens that are set aside for a call whose request sets no limit of its own. */
const DEFAULT_OUTPUT_TOKENS = 4_096;

/**
 * What a call may cost, before it is made: four bytes of request to a token, and the output that it may have. Units:
 * micro-USD. A call can cost more, as a token can be shorter; what it cost is settled after it.
 */
export const estimateMicroUsd = (
  call: Readonly<{ requestBytes: number; maxOutputTokens: number | undefined; modelMaxOutput: number }>,
  prices: Prices,
): number =>
  costMicroUsd(
    {
      promptTokens: Math.ceil(call.requestBytes / 4),
      cachedTokens: 0,
      completionTokens: Math.min(call.maxOutputTokens ?? DEFAULT_OUTPUT_TOKENS, call.modelMaxOutput),
    },
    prices,
  );

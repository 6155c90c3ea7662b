// Permission rules of an agent, applied to one call: what a pattern matches and which rule wins.
// Pure. Must not know harnesses or who is asked. Source: A101, A116 to A118.

/** What a rule says of a call. */
export type PermissionAction = 'allow' | 'ask' | 'deny';
/** A rule: one action, or pattern to action. */
export type PermissionRule = PermissionAction | Readonly<Record<string, PermissionAction>>;
/** The rules of an agent: one action for all, or key (a tool or a capability, or `*`) to rule. */
export type PermissionRules = PermissionAction | Readonly<Record<string, PermissionRule>>;

/**
 * One call. `keys`: names whose rules apply, the strongest first (the tool's own, then its capability).
 * `subjects`: what patterns are matched against; the strictest of them counts.
 */
export type PermissionQuestion = Readonly<{ keys: readonly string[]; subjects: readonly string[] }>;

const STRICTNESS: Readonly<Record<PermissionAction, number>> = { allow: 0, ask: 1, deny: 2 };

/** The strictest of some actions; `allow` for none. */
export const strictest = (actions: readonly PermissionAction[]): PermissionAction =>
  actions.reduce<PermissionAction>(
    (worst, action) => (STRICTNESS[action] > STRICTNESS[worst] ? action : worst),
    'allow',
  );

/** Whether the whole text matches: `*` is any text, `?` one character, all else itself. Linear in practice, no regular expression. */
export const matchesPattern = (pattern: string, text: string): boolean => {
  if (pattern.endsWith(' *') && pattern.slice(0, -2) === text) return true;
  let at = 0;
  let from = 0;
  let star = -1;
  let retry = 0;
  while (from < text.length) {
    const wanted = pattern[at];
    if (wanted === '*') {
      star = at;
      retry = from;
      at += 1;
    } else if (wanted !== undefined && (wanted === '?' || wanted === text[from])) {
      at += 1;
      from += 1;
    } else if (star === -1) {
      return false;
    } else {
      at = star + 1;
      retry += 1;
      from = retry;
    }
  }
  while (pattern[at] === '*') at += 1;
  return at === pattern.length;
};

/** The action of the longest pattern that matches, of equally long ones the stricter; undefined when none does. */
const byPattern = (
  patterns: Readonly<Record<string, PermissionAction>>,
  subject: string,
): PermissionAction | undefined => {
  let best: Readonly<{ length: number; action: PermissionAction }> | undefined;
  for (const [pattern, action] of Object.entries(patterns)) {
    if (!matchesPattern(pattern, subject)) continue;
    const length = pattern === '*' ? 0 : pattern.length;
    const isBetter =
      best === undefined ||
      length > best.length ||
      (length === best.length && STRICTNESS[action] > STRICTNESS[best.action]);
    if (isBetter) best = { length, action };
  }
  return best?.action;
};

const ruleOf = (rules: Readonly<Record<string, PermissionRule>>, key: string): PermissionRule | undefined =>
  Object.hasOwn(rules, key) ? rules[key] : undefined;

/** What one subject of a call gets: the first key with a rule that says something about it. */
const decideSubject = (
  rules: Readonly<Record<string, PermissionRule>>,
  keys: readonly string[],
  subject: string,
): PermissionAction => {
  for (const key of keys) {
    const rule = ruleOf(rules, key);
    const action = typeof rule === 'object' ? byPattern(rule, subject) : rule;
    if (action !== undefined) return action;
  }
  return 'allow';
};

/** What a call gets that has no subject: a rule that restricts something by pattern can only be asked about. Source: A118. */
const decideBare = (rules: Readonly<Record<string, PermissionRule>>, keys: readonly string[]): PermissionAction => {
  for (const key of keys) {
    const rule = ruleOf(rules, key);
    if (rule === undefined) continue;
    if (typeof rule !== 'object') return rule;
    const actions = Object.values(rule);
    const whole = actions.length === 1 ? rule['*'] : undefined;
    return whole ?? (actions.every((action) => action === 'allow') ? 'allow' : 'ask');
  }
  return 'allow';
};

/** What the rules say of a call. Without any rule it is allowed. Source: A118. */
export const decidePermission = (
  rules: PermissionRules | undefined,
  question: PermissionQuestion,
): PermissionAction => {
  if (rules === undefined) return 'allow';
  if (typeof rules !== 'object') return rules;
  const keys = [...question.keys, '*'];
  if (question.subjects.length === 0) return decideBare(rules, keys);
  return strictest(question.subjects.map((subject) => decideSubject(rules, keys, subject)));
};

/** Whether no call with these keys can ever run, so that the tool need not be shown. */
export const isAlwaysDenied = (rules: PermissionRules | undefined, keys: readonly string[]): boolean => {
  if (rules === undefined) return false;
  if (typeof rules !== 'object') return rules === 'deny';
  for (const key of [...keys, '*']) {
    const rule = ruleOf(rules, key);
    if (rule === undefined) continue;
    return typeof rule === 'object' ? Object.keys(rule).length === 1 && rule['*'] === 'deny' : rule === 'deny';
  }
  return false;
};

/**
 * The commands that a shell line consists of, the whole line first, so that a rule about `rm *` also holds for
 * `true; rm x` and `echo $(rm x)`. Splits at unquoted operators, and at command substitutions even in double quotes;
 * it errs towards more parts.
 */
export const commandsOf = (line: string): readonly string[] => {
  const parts: string[] = [];
  let current = '';
  let quote: '"' | "'" | undefined;
  const end = (): void => {
    const part = current.trim().replace(/^[({!]+\s*|\s*[)}]+$/g, '');
    if (part !== '') parts.push(part);
    current = '';
  };
  for (let at = 0; at < line.length; at += 1) {
    const character = line[at] ?? '';
    if (character === '\\' && quote !== "'") {
      current += character + (line[at + 1] ?? '');
      at += 1;
    } else if (quote !== "'" && (character === '`' || (character === '$' && line[at + 1] === '('))) {
      end();
      if (character === '$') at += 1;
    } else if (quote === undefined && (character === '"' || character === "'")) {
      quote = character;
      current += character;
    } else if (character === quote) {
      quote = undefined;
      current += character;
    } else if (quote === undefined && /[;&|\n]/.test(character)) {
      end();
    } else {
      current += character;
    }
  }
  end();
  const whole = line.trim();
  return [...new Set(whole === '' ? parts : [whole, ...parts])];
};

const LABEL = '[a-z0-9]([-a-z0-9]*[a-z0-9])?';
const SUBDOMAIN = `${LABEL}(\\.${LABEL})*`;
const QUALIFIED = '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]';
const VALUE = `(${QUALIFIED})?`;

const whole = (pattern: string): RegExp => new RegExp(`^(?:${pattern})$`);
const RE = { label: whole(LABEL), subdomain: whole(SUBDOMAIN), qualified: whole(QUALIFIED), value: whole(VALUE) };
const MAX_SUBDOMAIN = 253;
const MAX_LABEL = 63;

const tooLong = (limit: number): string => `must be no more than ${limit} bytes`;

/** Why this is no RFC 1123 subdomain; nothing when it is one. */
export function subdomainProblems(text: string): string[] {
  const problems = text.length > MAX_SUBDOMAIN ? [tooLong(MAX_SUBDOMAIN)] : [];
  if (!RE.subdomain.test(text)) {
    problems.push(
      `a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '${SUBDOMAIN}')`,
    );
  }
  return problems;
}

/** Why this is no RFC 1123 label; nothing when it is one. */
export function labelProblems(text: string): string[] {
  const problems = text.length > MAX_LABEL ? [tooLong(MAX_LABEL)] : [];
  if (!RE.label.test(text)) {
    problems.push(
      `a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '${LABEL}')`,
    );
  }
  return problems;
}

/** Why this is no name of a label or an annotation. */
export function qualifiedNameProblems(text: string): string[] {
  const shape =
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '" +
    `${QUALIFIED}')`;
  const parts = text.split('/');
  if (parts.length > 2) {
    return [
      `a qualified name must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '${QUALIFIED}') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`,
    ];
  }
  const problems: string[] = [];
  const name = parts.at(-1) ?? '';
  if (parts.length === 2) {
    if (parts[0] === '') problems.push('prefix part must be non-empty');
    else problems.push(...subdomainProblems(parts[0] ?? '').map((problem) => `prefix part ${problem}`));
  }
  if (name === '') problems.push('name part must be non-empty');
  else if (name.length > MAX_LABEL) problems.push(`name part ${tooLong(MAX_LABEL)}`);
  if (!RE.qualified.test(name)) problems.push(shape);
  return problems;
}

/** Why this is no value of a label. */
export function labelValueProblems(text: string): string[] {
  const problems = text.length > MAX_LABEL ? [tooLong(MAX_LABEL)] : [];
  if (!RE.value.test(text)) {
    problems.push(
      `a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '${VALUE}')`,
    );
  }
  return problems;
}

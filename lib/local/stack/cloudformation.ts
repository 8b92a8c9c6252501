/** What CloudFormation would know about a queue once it exists. */
export interface QueueFacts {
  readonly name: string;
  readonly url: string;
  readonly arn: string;
}

/** What references are resolved against. */
export interface CloudFacts {
  readonly region: string;
  readonly account: string;
  readonly queues: ReadonlyMap<string, QueueFacts>;
  /** Names of DynamoDB tables by logical id. Nothing stands behind them here, unless somebody starts it. */
  readonly tables?: ReadonlyMap<string, string> | undefined;
}

/**
 * Resolves Ref, Fn::GetAtt, Fn::Sub and Fn::Join against the queues of the stack. Anything else is refused by name, so
 * that nothing is quietly different here from what is deployed.
 */
export function resolveReferences(value: unknown, facts: CloudFacts): unknown {
  if (Array.isArray(value)) return value.map((item) => resolveReferences(item, facts));
  if (value === null || typeof value !== 'object') return value;
  const [first, ...others] = Object.entries(value);
  if (first !== undefined && others.length === 0 && (first[0] === 'Ref' || first[0].startsWith('Fn::')))
    return intrinsic(first[0], first[1], facts);
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, resolveReferences(item, facts)]));
}

function intrinsic(name: string, argument: unknown, facts: CloudFacts): unknown {
  switch (name) {
    case 'Ref':
      return reference(String(argument), facts);
    case 'Fn::GetAtt': {
      const [logicalId, attribute] = Array.isArray(argument) ? argument.map(String) : String(argument).split('.');
      return attributeOf(logicalId ?? '', attribute ?? '', facts);
    }
    case 'Fn::Sub':
      return substitute(argument, facts);
    case 'Fn::Join': {
      const [separator, parts] = argument as [string, unknown[]];
      return parts.map((part) => String(resolveReferences(part, facts))).join(separator);
    }
    default:
      throw new Error(`serverless.yml: the local runner does not know ${name}`);
  }
}

function substitute(argument: unknown, facts: CloudFacts): string {
  if (typeof argument !== 'string') throw new Error('serverless.yml: the local runner knows Fn::Sub with a text only');
  return argument.replaceAll(/\$\{([^}]+)\}/g, (_whole, inner: string) => {
    const [logicalId, attribute] = inner.split('.');
    return attribute === undefined ? reference(logicalId ?? '', facts) : attributeOf(logicalId ?? '', attribute, facts);
  });
}

function reference(logicalId: string, facts: CloudFacts): string {
  if (logicalId === 'AWS::Region') return facts.region;
  if (logicalId === 'AWS::AccountId') return facts.account;
  if (logicalId === 'AWS::Partition') return 'aws';
  return facts.tables?.get(logicalId) ?? queue(logicalId, facts).url;
}

function attributeOf(logicalId: string, attribute: string, facts: CloudFacts): string {
  const found = queue(logicalId, facts);
  if (attribute === 'Arn') return found.arn;
  if (attribute === 'QueueName') return found.name;
  if (attribute === 'QueueUrl') return found.url;
  throw new Error(`serverless.yml: the local runner does not know ${logicalId}.${attribute}`);
}

function queue(logicalId: string, facts: CloudFacts): QueueFacts {
  const found = facts.queues.get(logicalId);
  if (found === undefined) throw new Error(`serverless.yml: ${logicalId} is no queue or table of this stack`);
  return found;
}

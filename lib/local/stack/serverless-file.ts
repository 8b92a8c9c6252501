import { resolve } from 'node:path';
import * as z from 'zod/mini';
import { folderOf, readYaml, resolveVariables } from './variables.ts';
import { rateToMs } from './schedule-expression.ts';

/** A stack as serverless.yml declares it: variables are replaced, CloudFormation references are not yet. */
export interface DeclaredStack {
  readonly service: string;
  readonly stage: string;
  readonly region: string;
  readonly functions: readonly DeclaredFunction[];
  readonly queues: readonly DeclaredQueue[];
  /** Names of DynamoDB tables by logical id. */
  readonly tables: ReadonlyMap<string, string>;
}

export interface DeclaredFunction {
  readonly name: string;
  /** The source file that holds the handler: absolute, TypeScript. */
  readonly file: string;
  readonly exportName: string;
  readonly timeoutSeconds: number;
  readonly memoryMb: number;
  readonly environment: Readonly<Record<string, unknown>>;
  readonly mappings: readonly DeclaredMapping[];
  readonly schedules: readonly DeclaredSchedule[];
  readonly routes: readonly DeclaredRoute[];
}

/** An event source mapping of a queue. */
export interface DeclaredMapping {
  /** A CloudFormation reference to the queue's ARN. */
  readonly arn: unknown;
  readonly batchSize: number;
  /** Invocations side by side; absent: no limit of its own. */
  readonly maximumConcurrency: number | undefined;
  readonly reportsItemFailures: boolean;
}

export interface DeclaredSchedule {
  readonly everyMs: number;
}

/** A route of the HTTP API. */
export interface DeclaredRoute {
  readonly method: string;
  /** Without parameters. */
  readonly path: string;
}

export interface DeclaredQueue {
  readonly logicalId: string;
  readonly name: string;
  /** CloudFormation properties without the name. */
  readonly properties: Readonly<Record<string, unknown>>;
}

const sqsEvent = z.strictObject({
  arn: z.unknown(),
  batchSize: z._default(z.int().check(z.minimum(1), z.maximum(10)), 10),
  functionResponseType: z.optional(z.literal('ReportBatchItemFailures')),
  maximumConcurrency: z.optional(z.int().check(z.minimum(2), z.maximum(1000))),
  enabled: z._default(z.boolean(), true),
});

const scheduleEvent = z.union([
  z.string(),
  z.object({ rate: z.union([z.string(), z.array(z.string())]), enabled: z._default(z.boolean(), true) }),
]);

const httpApiEvent = z.strictObject({
  method: z.enum(['GET', 'POST', 'PUT', 'PATCH', 'DELETE']),
  path: z.string().check(z.regex(/^\/[\w/-]*$/, 'must be a path without parameters')),
});

const event = z.union([
  z.strictObject({ sqs: sqsEvent }),
  z.strictObject({ schedule: scheduleEvent }),
  z.strictObject({ httpApi: httpApiEvent }),
]);

const functionShape = z.object({
  handler: z.string().check(z.regex(/^[^.]+\.[A-Za-z]\w*$/, 'must be FILE.EXPORT')),
  timeout: z.optional(z.int().check(z.minimum(1), z.maximum(900))),
  memorySize: z.optional(z.int()),
  environment: z._default(z.record(z.string(), z.unknown()), {}),
  events: z._default(z.array(event), []),
});

const resourcesShape = z.object({
  Resources: z.optional(
    z.record(z.string(), z.object({ Type: z.string(), Properties: z.optional(z.record(z.string(), z.unknown())) })),
  ),
});

const fileShape = z.object({
  service: z.string(),
  provider: z.object({
    region: z.string(),
    timeout: z._default(z.int(), 6),
    memorySize: z._default(z.int(), 1024),
    environment: z._default(z.record(z.string(), z.unknown()), {}),
  }),
  functions: z.record(z.string(), functionShape),
  resources: z._default(z.union([resourcesShape, z.array(resourcesShape)]), []),
});
type ServerlessFile = z.infer<typeof fileShape>;

/** Reads a serverless.yml with everything that it pulls in. Throws errors that name the place. */
export function readServerlessFile(path: string, options: { readonly stage: string }): DeclaredStack {
  const folder = folderOf(path);
  const self = readYaml(path);
  const params = (self as { params?: { default?: Record<string, unknown> } } | null)?.params?.default ?? {};
  const resolved = resolveVariables(self, { self, folder, params, options: { stage: options.stage } });
  const parsed = fileShape.safeParse(resolved);
  if (!parsed.success) throw new Error(`${path}: ${parsed.error.issues.map(describe).join('; ')}`);
  const file = parsed.data;
  return {
    service: file.service,
    stage: options.stage,
    region: file.provider.region,
    functions: Object.entries(file.functions).map(([name, shape]) => declaredFunction(name, shape, file, folder)),
    queues: declaredQueues(file),
    tables: declaredTables(file),
  };
}

/** Where it is wrong and why, on one line. */
function describe(issue: z.core.$ZodIssue): string {
  const why = issue.code === 'unrecognized_keys' ? `unknown ${issue.keys.join(', ')}` : issue.message;
  return `${issue.path.join('.')}: ${why}`;
}

function declaredFunction(
  name: string,
  shape: ServerlessFile['functions'][string],
  file: ServerlessFile,
  folder: string,
): DeclaredFunction {
  const [module = '', exportName = ''] = shape.handler.split('.');
  return {
    name,
    file: resolve(folder, `${module}.ts`),
    exportName,
    timeoutSeconds: shape.timeout ?? file.provider.timeout,
    memoryMb: shape.memorySize ?? file.provider.memorySize,
    environment: { ...file.provider.environment, ...shape.environment },
    mappings: shape.events.flatMap((declared) =>
      'sqs' in declared && declared.sqs.enabled ? [mappingOf(declared.sqs)] : [],
    ),
    schedules: shape.events.flatMap((declared) => ('schedule' in declared ? schedulesOf(declared.schedule) : [])),
    routes: shape.events.flatMap((declared) => ('httpApi' in declared ? [declared.httpApi] : [])),
  };
}

function mappingOf(sqs: z.infer<typeof sqsEvent>): DeclaredMapping {
  return {
    arn: sqs.arn,
    batchSize: sqs.batchSize,
    maximumConcurrency: sqs.maximumConcurrency,
    reportsItemFailures: sqs.functionResponseType !== undefined,
  };
}

function schedulesOf(schedule: z.infer<typeof scheduleEvent>): DeclaredSchedule[] {
  if (typeof schedule === 'string') return [{ everyMs: rateToMs(schedule) }];
  if (!schedule.enabled) return [];
  return [schedule.rate].flat().map((rate) => ({ everyMs: rateToMs(rate) }));
}

function declaredQueues(file: ServerlessFile): DeclaredQueue[] {
  return [file.resources].flat().flatMap((part) =>
    Object.entries(part.Resources ?? {}).flatMap(([logicalId, resource]) => {
      if (resource.Type !== 'AWS::SQS::Queue') return [];
      const { QueueName: name, ...properties } = resource.Properties ?? {};
      if (typeof name !== 'string') throw new Error(`serverless.yml: queue ${logicalId} needs a QueueName`);
      return [{ logicalId, name, properties }];
    }),
  );
}

function declaredTables(file: ServerlessFile): ReadonlyMap<string, string> {
  const resources = [file.resources].flat().flatMap((part) => Object.entries(part.Resources ?? {}));
  return new Map(
    resources.flatMap(([logicalId, { Type, Properties }]) => {
      if (Type !== 'AWS::DynamoDB::Table') return [];
      const name = Properties?.['TableName'];
      if (typeof name !== 'string') throw new Error(`serverless.yml: table ${logicalId} needs a TableName`);
      return [[logicalId, name] as const];
    }),
  );
}

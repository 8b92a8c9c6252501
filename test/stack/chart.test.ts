import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { readForwarderConfig } from '../../lib/app/config.ts';
import { root } from './template.ts';

const folder = join(root, 'infra', 'forwarder');
/** scripts/check-stack.sh builds it from its Go module where there is none. */
const helm = process.env['HELM'] ?? 'helm';

interface Rendered {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly labels?: Readonly<Record<string, string>>;
  };
  readonly spec?: Pod;
  readonly rules?: readonly { readonly verbs: readonly string[]; readonly resources: readonly string[] }[];
}
interface Pod {
  readonly template: {
    readonly spec: {
      readonly securityContext: unknown;
      readonly containers: readonly {
        readonly image: string;
        readonly env: readonly { readonly name: string; readonly value: string }[];
        readonly securityContext: unknown;
        readonly volumeMounts?: readonly { readonly mountPath: string }[];
      }[];
    };
  };
}

const documents = (text: string): Rendered[] =>
  parseAllDocuments(text)
    .map((document) => document.toJS() as Rendered | null)
    .filter((object) => object !== null);

function template(...args: string[]): Rendered[] {
  const command = [
    'template',
    'kbind-forwarder',
    join(folder, 'chart'),
    '--namespace',
    'kbind',
    '--kube-version',
    '1.37.2',
    ...args,
  ];
  return documents(execFileSync(helm, command, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] }));
}

const valuesOf = (name: string): string[] => ['--values', join(folder, 'chart', 'ci', `${name}-values.yaml`)];

/** What Helm says about itself is no part of the thing. */
function plain({ metadata, ...rest }: Rendered): unknown {
  const own = Object.entries(metadata.labels ?? {}).filter(
    ([name]) => !/^(helm\.sh\/|app\.kubernetes\.io\/(managed-by|version|instance|name)$)/.test(name),
  );
  return { ...rest, metadata: { name: metadata.name, namespace: metadata.namespace, ...Object.fromEntries(own) } };
}

const sorted = (objects: readonly Rendered[]): unknown[] =>
  objects
    .toSorted((a, b) => `${a.kind}/${a.metadata.name}`.localeCompare(`${b.kind}/${b.metadata.name}`))
    .map((object) => plain(object));

const deploymentOf = (objects: readonly Rendered[]) => {
  const container = objects.find(({ kind }) => kind === 'Deployment')?.spec?.template.spec.containers[0];
  if (container === undefined) throw new Error('no Deployment');
  return container;
};
const environmentOf = (objects: readonly Rendered[]): Record<string, string> =>
  Object.fromEntries(deploymentOf(objects).env.map(({ name, value }) => [name, value]));

describe('the chart', () => {
  it('renders what the plain manifests beside it are', () => {
    const files = ['rbac.yaml', 'rbac-related.yaml', 'deployment.yaml'];
    const manifests = files.flatMap((file) => documents(readFileSync(join(folder, file), 'utf8')));
    expect(sorted(template(...valuesOf('sample')))).toEqual(sorted(manifests));
  });

  it.each(['sample', 'ingest'])('gives the forwarder a configuration that it takes (%s)', (name) => {
    expect(() => readForwarderConfig(environmentOf(template(...valuesOf(name))))).not.toThrow();
  });

  it('mounts the key of a cluster without cloud credentials, and no queue is named then', () => {
    const objects = template(...valuesOf('ingest'));
    expect(deploymentOf(objects)).toMatchObject({
      image: expect.stringMatching(/@sha256:/),
      volumeMounts: [{ mountPath: '/etc/kbind/ingest', readOnly: true }],
    });
    expect(environmentOf(objects)).not.toHaveProperty('CONTROL_QUEUE_URL');
  });

  it('runs as nobody, on a file system that it cannot write', () => {
    expect(deploymentOf(template(...valuesOf('sample'))).securityContext).toEqual({
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    });
  });

  it('lets the forwarder read and nothing else', () => {
    const verbs = template(...valuesOf('sample'))
      .flatMap(({ rules }) => rules ?? [])
      .flatMap((rule) => rule.verbs);
    expect(new Set(verbs)).toEqual(new Set(['get', 'list', 'watch']));
  });

  it('watches no Secrets unless asked to', () => {
    const roles = template(...valuesOf('ingest')).filter(({ rules }) =>
      rules?.some(({ resources }) => resources.includes('secrets')),
    );
    expect(roles).toEqual([]);
  });

  it.each([
    ['no way to send', ['--set', 'image.repository=x'], /send\.queues\.region is needed/],
    ['two ways to send', [...valuesOf('sample'), '--set', 'send.ingest.url=https://x'], /keys go one way/],
    ['no image', [], /image\.repository is needed/],
  ])('refuses %s', (_title, args, message) => {
    expect(() => template(...args)).toThrow(message);
  });
});

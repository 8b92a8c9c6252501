import { execFile, execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { embeddedKind } from '../../support/apiserver/kinds.ts';
import { installCrd, newNamespace, startServer, until, type TestServer } from '../../support/apiserver/servers.ts';
import { widget, widgetCrd, widgetPath } from '../../support/apiserver/widgets.ts';

const run = promisify(execFile);

function kubectlVersion(): string | undefined {
  try {
    const printed = execFileSync('kubectl', ['version', '--client', '-o', 'json'], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    return (JSON.parse(printed) as { clientVersion: { gitVersion: string } }).clientVersion.gitVersion;
  } catch {
    return undefined;
  }
}

const version = kubectlVersion();
const shown = version ?? '(LEFT OUT: there is no kubectl on PATH)';

describe.skipIf(version === undefined)(`kubectl ${shown} on the embedded server`, () => {
  let server: TestServer;
  let ns = '';
  const folder = mkdtempSync(join(tmpdir(), 'kubectl-'));
  const env = { ...process.env, KUBECONFIG: join(folder, 'kubeconfig'), HOME: folder, KUBECTL_KYAML: 'false' };

  beforeAll(async () => {
    server = await startServer(embeddedKind);
    writeFileSync(env.KUBECONFIG, server.kubeconfig);
    const crd = widgetCrd();
    await installCrd(server, { ...crd, spec: { ...crd.spec, names: { ...crd.spec.names, shortNames: ['wd'] } } });
    ns = await newNamespace(server);
  });
  afterAll(async () => {
    await server.api.close();
    await server.stop();
    rmSync(folder, { recursive: true });
  });

  const kubectl = async (...args: string[]): Promise<string> => {
    const { stdout } = await run('kubectl', ['-n', ns, ...args], { env });
    return stdout;
  };
  const manifest = (name: string, spec: object): string => {
    const file = join(folder, `${name}.json`);
    writeFileSync(file, JSON.stringify(widget(name, spec, { namespace: ns })));
    return file;
  };

  it('gets objects as a table, by short name, as JSON and by JSONPath', async () => {
    await server.api.post(widgetPath(ns), widget('shown', { size: 'large' }));
    expect(await kubectl('get', 'wd')).toMatch(/NAME\s+SIZE\n[^]*shown\s+large/);
    expect(await kubectl('get', 'widgets.example.org', 'shown', '-o', 'jsonpath={.spec.size}')).toBe('large');
    expect(JSON.parse(await kubectl('get', 'widget', 'shown', '-o', 'json'))).toMatchObject({
      kind: 'Widget',
      metadata: { name: 'shown' },
    });
    expect(await kubectl('get', 'widgets', '-A')).toMatch(/NAMESPACE\s+NAME\s+SIZE/);
    expect(await kubectl('get', 'ns')).toMatch(/kube-system\s+Active/);
  });

  it('describes objects, namespaces and secrets, with their events', async () => {
    const { body } = await server.api.post(widgetPath(ns), widget('described'));
    await server.api.post(`/api/v1/namespaces/${ns}/events`, {
      metadata: { name: 'e1' },
      involvedObject: {
        apiVersion: 'example.org/v1',
        kind: 'Widget',
        name: 'described',
        namespace: ns,
        uid: body.metadata.uid,
      },
      reason: 'ForeignObjectExists',
      message: 'somebody else has it',
      type: 'Warning',
    });
    expect(await kubectl('describe', 'widget', 'described')).toMatch(
      /Name:\s+described[^]*ForeignObjectExists[^]*somebody else has it/,
    );
    expect(await kubectl('describe', 'ns', ns)).toMatch(/Status:\s+Active/);
    await kubectl('create', 'secret', 'generic', 'hidden', '--from-literal=a=b');
    expect(await kubectl('describe', 'secret', 'hidden')).toMatch(/Type:\s+Opaque[^]*a:\s+1 bytes/);
    expect(await kubectl('get', 'events')).toContain('ForeignObjectExists');
  });

  it('applies on the client side', async () => {
    expect(await kubectl('apply', '-f', manifest('client-side', { size: 'small', replicas: 1 }))).toContain(
      'client-side created',
    );
    expect(await kubectl('apply', '-f', manifest('client-side', { size: 'small', replicas: 1 }))).toContain(
      'client-side unchanged',
    );
    expect(await kubectl('apply', '-f', manifest('client-side', { size: 'large' }))).toContain(
      'client-side configured',
    );
    expect((await server.api.get(widgetPath(ns, 'client-side'))).body.spec).toEqual({ size: 'large', color: 'blue' });
    await kubectl('create', 'configmap', 'settings', '--from-literal=a=b');
  });

  it('applies on the server side, and reports conflicts', async () => {
    expect(await kubectl('apply', '--server-side', '-f', manifest('server-side', { size: 'small' }))).toContain(
      'server-side serverside-applied',
    );
    await kubectl('patch', 'widget', 'server-side', '--type=merge', '-p', '{"spec":{"size":"large"}}');
    await expect(kubectl('apply', '--server-side', '-f', manifest('server-side', { size: 'small' }))).rejects.toThrow(
      /conflict/,
    );
    await kubectl('apply', '--server-side', '--force-conflicts', '-f', manifest('server-side', { size: 'small' }));
    expect((await server.api.get(widgetPath(ns, 'server-side'))).body.spec['size']).toBe('small');
  });

  it('refuses a field that the schema does not know', async () => {
    await expect(kubectl('apply', '-f', manifest('strict', { sise: 'small' }))).rejects.toThrow(
      /unknown field "spec\.sise"/,
    );
  });

  it('shows what would change', async () => {
    await kubectl('apply', '-f', manifest('dry', { size: 'small' }));
    expect(await kubectl('apply', '--dry-run=server', '-f', manifest('dry', { size: 'large' }))).toContain(
      'configured (server dry run)',
    );
    expect((await server.api.get(widgetPath(ns, 'dry'))).body.spec['size']).toBe('small');
  });

  it('edits labels and annotations', async () => {
    await server.api.post(widgetPath(ns), widget('labelled'));
    expect(await kubectl('label', 'widget', 'labelled', 'a=b')).toContain('labeled');
    expect(await kubectl('annotate', 'widget', 'labelled', 'c=d')).toContain('annotated');
    expect(await kubectl('get', 'widgets', '-l', 'a=b', '-o', 'name')).toBe('widget.example.org/labelled\n');
    expect(await kubectl('label', 'widget', 'labelled', 'a-')).toContain('unlabeled');
    await expect(kubectl('label', 'widget', 'labelled', 'a=not valid')).rejects.toThrow(
      /a valid label must be|Invalid value/,
    );
  });

  it('watches with -w', async () => {
    const child = spawn('kubectl', ['-n', ns, 'get', 'widgets', '-w', '--output-watch-events'], {
      env,
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    let printed = '';
    child.stdout.on('data', (chunk: Buffer) => (printed += chunk.toString()));
    await until(async () => printed.includes('EVENT'));
    await server.api.post(widgetPath(ns), widget('watched', { size: 'small' }));
    await server.api.patch(widgetPath(ns, 'watched'), 'merge', { spec: { size: 'xlarge' } });
    await server.api.delete(widgetPath(ns, 'watched'));
    await until(async () => /DELETED\s+watched\s+xlarge/.test(printed));
    child.kill();
    expect(printed).toMatch(/ADDED\s+watched\s+small[^]*MODIFIED\s+watched\s+xlarge/);
  });

  it('waits for a condition', async () => {
    await server.api.post(widgetPath(ns), widget('waited'));
    const waiting = kubectl('wait', '--for=condition=Ready', 'widget/waited', '--timeout=30s');
    const status = {
      conditions: [
        {
          type: 'Ready',
          status: 'True',
          lastTransitionTime: '2026-01-01T00:00:00Z',
          reason: 'AsExpected',
          message: '',
        },
      ],
    };
    await server.api.patch(`${widgetPath(ns, 'waited')}/status`, 'merge', { status });
    expect(await waiting).toContain('condition met');
    expect(await kubectl('wait', '--for=condition=Established', 'crd/widgets.example.org', '--timeout=30s')).toContain(
      'condition met',
    );
  });

  it('deletes, and waits until it is done', async () => {
    await server.api.post(widgetPath(ns), widget('deleted'));
    expect(await kubectl('delete', 'widget', 'deleted')).toContain('deleted');
    expect((await server.api.get(widgetPath(ns, 'deleted'))).code).toBe(404);
    await expect(kubectl('get', 'widget', 'deleted')).rejects.toThrow(
      /Error from server \(NotFound\): widgets\.example\.org "deleted" not found/,
    );
    const space = await newNamespace(server);
    expect(await kubectl('delete', 'ns', space)).toContain('deleted');
  });

  it('explains a custom resource, lists resources and asks about access', async () => {
    expect(await kubectl('explain', 'widgets.spec.size')).toMatch(/FIELD: size <string>/);
    expect(await kubectl('api-resources', '--api-group=example.org')).toMatch(
      /widgets\s+wd\s+example\.org\/v1\s+true\s+Widget/,
    );
    expect((await kubectl('auth', 'can-i', 'create', 'widgets.example.org')).trim()).toBe('yes');
    expect(await kubectl('auth', 'whoami')).toContain('admin');
  });
});

import { expect, test } from 'vitest';
import { refusalOfNode } from '../../../lib/cli/needed-node.ts';

test.each(['v24.0.0', 'v24.21.0', 'v100.1.0'])('%s will do', (version) => {
  expect(refusalOfNode(version)).toBeUndefined();
});

test.each(['v20.20.2', 'v22.0.0', 'v9.0.0', 'what is this'])('%s is refused, with the way out', (version) => {
  expect(refusalOfNode(version)).toContain(`needs Node 24 or newer, and this is ${version}; npx kbind-fleet`);
});

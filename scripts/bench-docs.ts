import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { medianRuns, summarize } from '../test/bench/medians.ts';
import { tableOf, type Result } from '../test/bench/result.ts';

/**
 * Makes what docs/performance.md shows of the results in docs/bench (`npm run bench -- --out docs/bench`): its tables, between
 * the two marks, and how requests and time grow with the number of objects, in docs/bench/requests.svg and milliseconds.svg.
 * `npm run bench:docs` does it.
 */

interface Run {
  readonly machine: {
    readonly cpu: string;
    readonly cores: number;
    readonly memoryGb: number;
    readonly node: string;
    readonly load: number;
  };
  readonly server: string;
  readonly n: number;
  readonly repeat: number;
  readonly results: readonly Result[];
}

const folder = join(import.meta.dirname, '..', 'docs', 'bench');
const WIDTH = 760;
const HEIGHT = 420;
const LEFT = 70;
const RIGHT = 190;
const TOP = 30;
const BOTTOM = 50;
const COLOURS = ['#1f77b4', '#d62728', '#2ca02c', '#9467bd', '#ff7f0e', '#17becf', '#8c564b', '#7f7f7f', '#e377c2'];
const SCENARIOS = ['create', 'change', 'status', 'delete', 'drain', 'backstop', 'relist', 'fanout'];
const page = join(folder, '..', 'performance.md');
const BEGIN = '<!-- figures: made by npm run bench:docs -->';
const END = '<!-- end of figures -->';

const runs = readdirSync(folder)
  .filter((file) => /^(real|embedded)-\d+\.json$/.test(file))
  .map((file) => JSON.parse(readFileSync(join(folder, file), 'utf8')) as Run)
  .sort((a, b) => a.n - b.n);
const sizes = runs.map(({ n }) => n);

/** Counts are the same on both servers; times are those of real ones only. */
const isDrawn = (what: 'requests' | 'ms', { server }: Run): boolean => what === 'requests' || server === 'real';

type Point = readonly [n: number, value: number];

function seriesOf(what: 'requests' | 'ms'): ReadonlyMap<string, readonly Point[]> {
  return new Map(
    SCENARIOS.map((name): [string, Point[]] => [
      name,
      runs
        .filter((run) => isDrawn(what, run))
        .flatMap(({ n, results }) =>
          medianRuns(results)
            .filter(({ scenario }) => scenario === name)
            .map((result): Point => [n, result[what]]),
        ),
    ]).filter(([, points]) => points.length > 0),
  );
}

/** Both axes count in powers of ten: what grows with the objects is a slope, what does not is flat. */
function draw(what: 'requests' | 'ms', title: string): string {
  const series = seriesOf(what);
  const top = Math.max(10, ...[...series.values()].flat().map(([, value]) => value));
  const [first = 10, last = first] = [sizes[0], sizes.at(-1)];
  const span = Math.max(Math.log10(last / first), 0.001);
  const decades = Math.ceil(Math.log10(top));
  const x = (n: number): number => LEFT + (Math.log10(n / first) / span) * (WIDTH - LEFT - RIGHT);
  const y = (value: number): number =>
    HEIGHT - BOTTOM - (Math.log10(Math.max(1, value)) / decades) * (HEIGHT - TOP - BOTTOM);
  const grid = Array.from({ length: decades + 1 }, (_, power) => {
    const height = y(10 ** power).toFixed(1);
    return (
      `<line x1="${LEFT}" x2="${WIDTH - RIGHT}" y1="${height}" y2="${height}" stroke="#ddd"/>` +
      `<text x="${LEFT - 8}" y="${height}" dy="4" text-anchor="end">${(10 ** power).toLocaleString('en')}</text>`
    );
  });
  const ticks = sizes.map(
    (n) =>
      `<text x="${x(n).toFixed(1)}" y="${HEIGHT - BOTTOM + 20}" text-anchor="middle">${n.toLocaleString('en')}</text>`,
  );
  const lines = [...series].map(([name, points], index) => curve(name, points, { index, x, y }));
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" font-family="sans-serif" font-size="12">`,
    `<rect width="${WIDTH}" height="${HEIGHT}" fill="white"/>`,
    `<text x="${LEFT}" y="18" font-size="14">${title}</text>`,
    ...grid,
    ...ticks,
    `<text x="${(LEFT + WIDTH - RIGHT) / 2}" y="${HEIGHT - 10}" text-anchor="middle">objects</text>`,
    ...lines,
    '</svg>',
    '',
  ].join('\n');
}

interface Place {
  readonly index: number;
  readonly x: (n: number) => number;
  readonly y: (value: number) => number;
}

function curve(name: string, points: readonly Point[], { index, x, y }: Place): string {
  const colour = COLOURS[index % COLOURS.length] ?? 'black';
  const at = points.map(([n, value]) => `${x(n).toFixed(1)},${y(value).toFixed(1)}`);
  const dots = points.map(
    ([n, value]) => `<circle cx="${x(n).toFixed(1)}" cy="${y(value).toFixed(1)}" r="3" fill="${colour}"/>`,
  );
  const legend = TOP + 16 * index;
  return (
    `<polyline points="${at.join(' ')}" fill="none" stroke="${colour}" stroke-width="2"/>${dots.join('')}` +
    `<rect x="${WIDTH - RIGHT + 20}" y="${legend}" width="10" height="10" fill="${colour}"/>` +
    `<text x="${WIDTH - RIGHT + 36}" y="${legend + 9}">${name}</text>`
  );
}

function figuresOf({ machine, server, n, repeat, results }: Run): string {
  const { cpu, cores, memoryGb, node, load } = machine;
  const rounds = repeat === 1 ? 'one round' : `medians of ${repeat} rounds`;
  const at = `${cores} cores (${cpu}), ${memoryGb} GB, Node ${node}; load of others before it: ${load}`;
  return `### ${n.toLocaleString('en')} objects on ${server} API servers\n\n${rounds}; ${at}.\n\n${tableOf(medianRuns(results), summarize(results))}\n`;
}

function writeTables(): void {
  const text = readFileSync(page, 'utf8');
  const [before, rest] = text.split(BEGIN);
  const after = rest?.split(END)[1];
  if (before === undefined || after === undefined) throw new Error(`${page} has no place for figures`);
  writeFileSync(page, `${before}${BEGIN}\n\n${runs.map(figuresOf).join('\n')}\n${END}${after}`);
}

mkdirSync(folder, { recursive: true });
writeTables();
writeFileSync(join(folder, 'requests.svg'), draw('requests', 'Requests at both API servers'));
writeFileSync(join(folder, 'milliseconds.svg'), draw('ms', 'Milliseconds from the first act to the last effect'));
console.log(`drawn from ${runs.length} runs: N = ${sizes.join(', ')}`);

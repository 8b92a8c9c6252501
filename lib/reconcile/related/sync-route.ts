import pLimit from 'p-limit';
import { keyText, type MetaObject, type ObjectKey } from '../../model/api.ts';
import { isError, KbindError } from '../../model/errors.ts';
import { confirmSides } from '../side.ts';
import type { RoutePass } from './pass.ts';
import {
  lookUpTargets,
  readCopies,
  readSources,
  type CopySummary,
  type Sources,
  type SourceSummary,
} from './read-both-sides.ts';
import type { RelatedReport } from './report.ts';
import { toPrune, whatToDo, type ToDo } from './what-to-do.ts';
import { whoMade } from './who-made-it.ts';
import { createCopy, deleteCopy, updateCopy, type Written } from './write-copy.ts';

/** Objects of one route that are written side by side. */
const SIDE_BY_SIDE = 4;

/**
 * One kind in one direction: copies of every selected source are made to match, copies that no entry asks for are deleted.
 * What one object is refused for holds nobody else up; what is to be retried is thrown when the rest is done.
 * @returns whether no copy of this binding is left, for a route that has no entry any more.
 */
export async function syncRoute(pass: RoutePass, report: RelatedReport): Promise<boolean> {
  // Copies first: a source that appears between the lists, and its copy with it, must not look like a copy without a source.
  const copies = await copiesOrDenied(pass, report);
  const sources = await readSources(pass);
  const complete = noteRefusedEntries(pass, sources, report);
  if (copies === undefined) return false;
  const failures = await writeAll(pass, report, { sources, copies });
  const surplus = complete ? toPrune(copies, sources.byKey, pass.owner) : [];
  if (surplus.length > 0) failures.push(...(await prune(pass, report, surplus)));
  if (failures.length > 0) throw failures[0];
  return complete && surplus.length === 0 && ![...copies.values()].some((copy) => isOurs(pass, copy));
}

const isOurs = ({ owner }: RoutePass, { object }: CopySummary): boolean => whoMade(object, owner) === 'ours';

/** A route of which one entry could not be asked for is not known completely, and nothing of it is deleted. */
function noteRefusedEntries({ entries }: RoutePass, { refused }: Sources, report: RelatedReport): boolean {
  const broken = entries.filter(({ problem }) => problem !== undefined);
  for (const { title, problem } of broken)
    report.invalid.push(`${title}: the labelSelector is invalid: ${problem ?? ''}`);
  for (const { entry, error } of refused) {
    if (error.errorClass === 'invalid') report.invalid.push(`${entry.title}: ${error.message}`);
    else report.denied.push(`${entry.title}: the ${error.details.side ?? 'other side'} forbids ${error.message}`);
  }
  return broken.length === 0 && refused.length === 0;
}

async function copiesOrDenied(
  pass: RoutePass,
  report: RelatedReport,
): Promise<ReadonlyMap<string, CopySummary> | undefined> {
  try {
    return await readCopies(pass);
  } catch (error) {
    if (!isError(error, 'forbidden')) throw error;
    report.denied.push(denial(pass, error));
    return undefined;
  }
}

const denial = ({ route, target, entries }: RoutePass, { message }: KbindError): string => {
  const title = entries[0]?.title ?? `former relatedResources (${route.ref.resource} ${route.direction})`;
  return `${title}: the ${target.which} forbids ${message}`;
};

interface Both {
  readonly sources: Sources;
  readonly copies: ReadonlyMap<string, CopySummary>;
}

/** Every source of the route, each for itself. Answers with what is to be retried. */
async function writeAll(pass: RoutePass, report: RelatedReport, { sources, copies }: Both): Promise<KbindError[]> {
  const all = [...sources.byKey];
  const unknown = all.flatMap(([key, { key: objectKey }]) => (copies.has(key) ? [] : [objectKey]));
  let others: ReadonlyMap<string, MetaObject>;
  try {
    others = await lookUpTargets(pass, unknown);
  } catch (error) {
    if (!isError(error, 'forbidden')) throw error;
    report.denied.push(denial(pass, error));
    return [];
  }
  return eachOf(pass, report, all, async ([key, source]) => {
    const target = copies.get(key) ?? { object: others.get(key) };
    const todo = whatToDo(source, target, pass.owner);
    await act(pass, report, { todo, source, object: target.object });
  });
}

async function act(
  pass: RoutePass,
  report: RelatedReport,
  {
    todo,
    source,
    object,
  }: { readonly todo: ToDo; readonly source: SourceSummary; readonly object: MetaObject | undefined },
): Promise<void> {
  if (todo === 'wait') report.waiting = true;
  if (todo === 'collision') noteCollision(pass, report, { key: source.key, object });
  if (todo === 'create') noteWritten(pass, report, source.key, await createCopy(pass, source.key));
  if (todo === 'update') noteWritten(pass, report, source.key, await updateCopy(pass, source.key));
}

function noteCollision(
  pass: RoutePass,
  report: RelatedReport,
  { key, object }: { readonly key: ObjectKey; readonly object: MetaObject | undefined },
): void {
  const reason = whoMade(object, pass.owner) === 'unmarked' ? 'ForeignObjectExists' : 'OwnedByAnother';
  report.collisions.push({ object: titleOf(pass, key), reason });
}

const titleOf = ({ route, target }: RoutePass, key: ObjectKey): string =>
  `${route.ref.kind} ${keyText(key)} of the ${target.which}`;

function noteWritten(pass: RoutePass, report: RelatedReport, key: ObjectKey, written: Written): void {
  if (written === 'written') report.written += 1;
  if (written === 'wait') report.waiting = true;
  if (written === 'altered') report.refused.push(`${titleOf(pass, key)}: its admission alters what is applied`);
}

/**
 * Deletes copies that nothing asks for. Irreversible: it rests on complete lists of this pass, on both clusters having been
 * who they should be after these were read, and on the binding's spec as it is after that.
 */
async function prune(pass: RoutePass, report: RelatedReport, surplus: readonly CopySummary[]): Promise<KbindError[]> {
  await pass.ground.confirm();
  await confirmSides(pass.source, pass.target);
  return eachOf(pass, report, surplus, async ({ object }) => {
    if (object.metadata.deletionTimestamp !== undefined) return;
    await deleteCopy(pass, object);
    report.deleted += 1;
  });
}

/** Runs side by side, and to its end whatever happens: a handler never returns while something of it still runs. */
async function eachOf<T>(
  pass: RoutePass,
  report: RelatedReport,
  items: readonly T[],
  run: (item: T) => Promise<void>,
): Promise<KbindError[]> {
  const limit = pLimit(SIDE_BY_SIDE);
  const failures: KbindError[] = [];
  const results = await Promise.allSettled(
    items.map((item) =>
      limit(async () => {
        if (pass.world.signal.aborted) throw new KbindError('aborted', 'no time is left for related resources');
        try {
          await run(item);
        } catch (error) {
          noteFailure(pass, report, failures, error);
        }
      }),
    ),
  );
  const stopped = results.find((result) => result.status === 'rejected');
  if (stopped !== undefined) throw stopped.reason;
  return failures;
}

/** What an object is refused for becomes a report; what says nothing about the object is thrown, the rest retried. */
function noteFailure(pass: RoutePass, report: RelatedReport, failures: KbindError[], error: unknown): void {
  if (!(error instanceof KbindError) || error.errorClass === 'aborted') throw error;
  if (error.errorClass === 'forbidden') report.denied.push(denial(pass, error));
  else if (error.errorClass === 'namespace-terminating') report.waiting = true;
  else if (error.errorClass === 'invalid') report.refused.push(`the ${pass.target.which} refuses ${error.message}`);
  else failures.push(error);
}

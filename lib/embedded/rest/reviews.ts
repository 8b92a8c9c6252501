import type { Rules } from '../auth/rules.ts';
import { parseBody } from '../http/body.ts';
import { badRequest } from '../api/status.ts';
import { isObject, objectAt, textAt, type Obj } from '../json/json.ts';
import type { User } from './world.ts';

/** A question to the server, sent as an object to create. */
export interface Question {
  readonly body: Buffer;
  readonly contentType: string;
  readonly user: User;
  readonly rules: Rules;
}

function readBody(question: Question, kind: string): Obj {
  const body = parseBody(question.body, question.contentType);
  if (!isObject(body)) throw badRequest(`expected a ${kind}`);
  return body;
}

const base = (body: Obj): Obj => ({ ...body, metadata: { creationTimestamp: null } });

/** SelfSubjectAccessReview: may I? */
export function accessReview(question: Question): Obj {
  const body = readBody(question, 'SelfSubjectAccessReview');
  const asked = objectAt(body, 'spec', 'resourceAttributes');
  const subresource = textAt(asked, 'subresource');
  const resource = subresource ? `${textAt(asked, 'resource')}/${subresource}` : textAt(asked, 'resource');
  const allowed = question.rules.allows(question.user, {
    verb: textAt(asked, 'verb'),
    group: textAt(asked, 'group'),
    resource,
    namespace: textAt(asked, 'namespace'),
    name: textAt(asked, 'name'),
  });
  return { ...base(body), status: { allowed } };
}

/** SelfSubjectReview: who am I? */
export function whoAmI(question: Question): Obj {
  const body = readBody(question, 'SelfSubjectReview');
  return { ...base(body), status: { userInfo: { username: question.user.name, groups: question.user.groups } } };
}

import type { AnyBinding } from '../../model/kinds.ts';
import { coveringBinding, type BindingLists } from '../instance/which-binding.ts';
import { nameOf, scopeOf } from './target.ts';

/**
 * For each API of a binding that another one covers first (spec §7: ClusterBindings, then Bindings of the namespace, by
 * name, within one Connection), a sentence that says so (L23): what is synchronized there is what that other binding says.
 */
export function shadowedApis(binding: AnyBinding, lists: BindingLists): string[] {
  const key = { namespace: scopeOf(binding) ?? '', name: '' };
  return binding.spec.apis.flatMap(({ name: api }) => {
    const first = coveringBinding(lists, { api, namespaced: true, key }, binding.spec.connectionRef.name);
    if (first === undefined || first.metadata.uid === binding.metadata.uid) return [];
    return [`${api} is synchronized by ${nameOf(first)}, which comes first`];
  });
}

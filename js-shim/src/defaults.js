/**
 * What a Node caller may leave out, and what it means then. Everything else of a record must be
 * given, but for the contract's own options. Scenarios do not use this: there every absent member
 * has its type's empty value.
 */

/** By `interface.record.field`: the value that is used, or a word for one that depends on the call. */
export const OPTIONAL = Object.freeze({
  'types.scope.team': '',
  'types.scope.user': '',
  'types.scope.agent': '',
  'types.scope.session': '',
  'types.message.structured': false,
  'hooks.prompt-event.scope': '$scope',
  'hooks.prompt-event.at': '$now',
  'hooks.write-event.scope': '$scope',
  'hooks.write-event.role': 'user',
  'hooks.tool-event.scope': '$scope',
  'hooks.tool-event.arguments-json': '',
  'hooks.tool-event.is-error': false,
  'hooks.tool-event.at': '$now',
  'hooks.end-event.scope': '$scope',
  'hooks.end-event.success': true,
  'hooks.end-event.at': '$now',
  'hooks.session-event.scope': '$scope',
  'hooks.session-event.reason': '',
  'hooks.session-event.at': '$now',
  'hooks.assemble-request.scope': '$scope',
  'hooks.assemble-request.overhead-tokens': 0,
  'hooks.assemble-request.model': '',
  'hooks.assemble-request.at': '$now',
  'tools.invocation.scope': '$scope',
  'tools.invocation.arguments-json': '',
  'tools.invocation.at': '$now',
  'memory.selector.ids': Object.freeze([]),
  'memory.search-request.scope': '$scope',
  'memory.search-request.layer': 'atoms',
  'memory.search-request.strategy': '',
  'memory.search-request.limit': 10,
  'memory.search-request.at': '$now',
  'work.llm-answer.model': '',
});

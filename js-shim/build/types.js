/** Writes the contract as TypeScript: records in, records out, documented as in `wit/`. */

import { OPTIONAL } from '../src/defaults.js';

/** Returns the text of `contract.d.ts`. */
export function typeDeclarations(contract) {
  const out = ['// Generated from wit/ by `npm run build`. Times are milliseconds since 1970 (UTC).\n'];
  for (const [key, type] of Object.entries(contract.types)) {
    const name = pascal(key.split('.')[1]);
    out.push(comment(type.doc, ''));
    if (type.kind === 'alias') out.push(`export type ${name} = ${spell(contract, type.type)};\n`);
    else if (type.kind === 'enum') out.push(`export type ${name} = ${type.cases.map((one) => `'${one.name}'`).join(' | ')};\n`);
    else if (type.kind === 'variant') {
      const cases = type.cases.map((one) => (one.type ? `{ tag: '${one.name}'; val: ${spell(contract, one.type)} }` : `{ tag: '${one.name}' }`));
      out.push(`export type ${name} = ${cases.join(' | ')};\n`);
    } else {
      out.push(`export interface ${name} {`);
      for (const field of type.fields) {
        const optional = isOption(field.type) || `${key}.${field.name}` in OPTIONAL;
        out.push(comment(field.doc, '  '));
        out.push(`  ${field.js}${optional ? '?' : ''}: ${spell(contract, field.type)};`);
      }
      out.push('}\n');
    }
  }
  return out.filter((line) => line !== null).join('\n');
}

function isOption(type) {
  return typeof type === 'object' && type !== null && 'option' in type;
}

function spell(contract, type) {
  if (type === 'u32' || type === 'f32' || type === 'u64') return 'number';
  if (type === 'bool') return 'boolean';
  if (type === 'string') return 'string';
  if ('option' in type) return `${spell(contract, type.option)} | undefined`;
  if ('list' in type) return type.list === 'f32' ? 'number[] | Float32Array' : `Array<${spell(contract, type.list)}>`;
  if ('tuple' in type) return `[${type.tuple.map((part) => spell(contract, part)).join(', ')}]`;
  return pascal(type.ref.split('.')[1]);
}

function pascal(name) {
  return name.replace(/(^|-)([a-z0-9])/g, (_, _dash, letter) => letter.toUpperCase());
}

function comment(doc, indent) {
  if (!doc) return null;
  const lines = doc.split('\n').map((line) => `${indent} * ${line}`.trimEnd());
  return [`${indent}/**`, ...lines, `${indent} */`].join('\n');
}

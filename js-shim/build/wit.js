/**
 * Reads the contract (`wit/`) into a table, so that the shim never repeats a record by hand.
 *
 * Only what the contract uses is understood (records, enums, variants, aliases, functions); anything
 * else is an error, so that a new construct is noticed at build time.
 */

import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

const PRIMITIVES = new Set(['bool', 'u32', 'u64', 'f32', 'string']);

/**
 * Returns the contract of the `.wit` files in `directory`: types by `interface.name`, functions by
 * `interface.name`, and which interfaces the world exports.
 */
export function readContract(directory) {
  const contract = { package: '', types: {}, functions: {}, exports: [] };
  for (const name of readdirSync(directory).filter((file) => file.endsWith('.wit')).sort()) {
    new Reader(readFileSync(join(directory, name), 'utf8'), name).file(contract);
  }
  return contract;
}

/** Returns `name` as JavaScript spells it: `turn-id` is `turnId`. */
export function camel(name) {
  return name.replace(/-([a-z0-9])/g, (_, letter) => letter.toUpperCase());
}

function tokens(text) {
  return [...text.matchAll(/\/\/\/[^\n]*|->|%?[A-Za-z][A-Za-z0-9-]*|[0-9]+(?:\.[0-9]+)*|[^\s]/g)].map(([token]) => token);
}

class Reader {
  constructor(text, file) {
    this.tokens = tokens(text);
    this.fileName = file;
    this.at = 0;
  }

  peek() {
    return this.tokens[this.at];
  }

  next() {
    if (this.at >= this.tokens.length) throw new Error(`${this.fileName}: ends in the middle of a definition`);
    return this.tokens[this.at++];
  }

  expect(token) {
    const found = this.next();
    if (found !== token) throw new Error(`${this.fileName}: expected ${token}, found ${found} (token ${this.at})`);
  }

  take(token) {
    if (this.peek() !== token) return false;
    this.at += 1;
    return true;
  }

  name() {
    return this.next().replace(/^%/, '');
  }

  skipTo(token) {
    while (this.next() !== token);
  }

  /** Reads doc comments and attributes before an item; returns the comment. */
  doc() {
    const lines = [];
    for (;;) {
      const token = this.peek();
      if (token?.startsWith('///')) lines.push(this.next().slice(3).trim());
      else if (this.take('@')) this.skipTo(')');
      else return lines.join('\n');
    }
  }

  file(contract) {
    for (;;) {
      const doc = this.doc();
      if (this.at >= this.tokens.length) return;
      const word = this.next();
      if (word === 'package') {
        contract.package = '';
        while (this.peek() !== ';') contract.package += this.next();
        this.expect(';');
      } else if (word === 'interface') this.interface(contract, this.name());
      else if (word === 'world') this.world(contract, doc);
      else throw new Error(`${this.fileName}: ${word} is not understood`);
    }
  }

  world(contract) {
    this.name();
    this.expect('{');
    while (!this.take('}')) {
      this.doc();
      const direction = this.next();
      const name = this.name();
      this.expect(';');
      if (direction === 'export') contract.exports.push(name);
    }
  }

  interface(contract, owner) {
    this.owner = owner;
    this.used = {};
    this.expect('{');
    for (;;) {
      const doc = this.doc();
      if (this.take('}')) return;
      const word = this.next();
      if (word === 'use') this.use();
      else if (word === 'type') {
        const name = this.name();
        this.expect('=');
        contract.types[`${owner}.${name}`] = { kind: 'alias', doc, type: this.type() };
        this.expect(';');
      } else if (['record', 'enum', 'variant'].includes(word)) {
        const name = this.name();
        contract.types[`${owner}.${name}`] = { kind: word, doc, ...this.members(word) };
      } else this.function(contract, word.replace(/^%/, ''), doc);
    }
  }

  use() {
    const from = this.name();
    this.expect('.');
    this.expect('{');
    while (!this.take('}')) {
      const name = this.name();
      this.used[name] = `${from}.${name}`;
      this.take(',');
    }
    this.expect(';');
  }

  members(kind) {
    const members = [];
    this.expect('{');
    for (;;) {
      const doc = this.doc();
      if (this.take('}')) break;
      const name = this.name();
      const member = { name, js: camel(name), doc };
      if (kind === 'record') {
        this.expect(':');
        member.type = this.type();
      } else if (kind === 'variant' && this.take('(')) {
        member.type = this.type();
        this.expect(')');
      }
      members.push(member);
      this.take(',');
    }
    return kind === 'record' ? { fields: members } : { cases: members };
  }

  function(contract, name, doc) {
    this.expect(':');
    this.expect('func');
    this.expect('(');
    const params = [];
    while (!this.take(')')) {
      const param = this.name();
      this.expect(':');
      params.push({ name: param, js: camel(param), type: this.type() });
      this.take(',');
    }
    let result = null;
    let fails = false;
    if (this.take('->')) {
      const type = this.type();
      fails = typeof type === 'object' && 'result' in type;
      result = fails ? type.result : type;
    }
    this.expect(';');
    contract.functions[`${this.owner}.${name}`] = { doc, params, result, fails };
  }

  /** Reads a type: a primitive's name, `{option}`, `{list}`, `{tuple}`, `{result}` or `{ref}`. */
  type() {
    const word = this.name();
    if (PRIMITIVES.has(word)) return word;
    if (word === '_') return null;
    if (word === 'option' || word === 'list') {
      this.expect('<');
      const inner = this.type();
      this.expect('>');
      return { [word]: inner };
    }
    if (word === 'tuple') {
      this.expect('<');
      const parts = [this.type()];
      while (this.take(',')) parts.push(this.type());
      this.expect('>');
      return { tuple: parts };
    }
    if (word === 'result') {
      this.expect('<');
      const ok = this.type();
      this.expect(',');
      this.type();
      this.expect('>');
      return { result: ok };
    }
    return { ref: this.used[word] ?? `${this.owner}.${word}` };
  }
}

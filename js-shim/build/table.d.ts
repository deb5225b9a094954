
/** A type of the contract: a primitive, a list, an option, a tuple, or a named type (`interface.name`). */
export type WitType = 'bool' | 'u32' | 'u64' | 'f32' | 'string' | { option: WitType } | { list: WitType } | { tuple: WitType[] } | { ref: string };

/** A function of the contract. */
export interface WitFunction {
  params: Array<{ name: string; js: string; type: WitType }>;
  result: WitType | null;
  fails: boolean;
}

/** A named type of the contract. */
export type WitNamed =
  | { kind: 'alias'; type: WitType }
  | { kind: 'enum'; cases: Array<{ name: string; js: string }> }
  | { kind: 'variant'; cases: Array<{ name: string; js: string; type?: WitType }> }
  | { kind: 'record'; fields: Array<{ name: string; js: string; type: WitType }> };

declare const contract: {
  package: string;
  types: Record<string, WitNamed>;
  functions: Record<string, WitFunction>;
  exports: string[];
};
export default contract;

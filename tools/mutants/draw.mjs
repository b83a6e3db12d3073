/** Finds the nodes of the sources that can be mutated, in TypeScript's syntax trees, and draws mutants among them. */

import { createHash } from 'node:crypto';
import * as fs from 'node:fs';
import path from 'node:path';
import { SyntaxKind as Kind } from 'typescript/unstable/ast';
import { isTypeNode } from 'typescript/unstable/ast/is';
import { API } from 'typescript/unstable/sync';

/** @typedef {import('typescript/unstable/ast').Node} Node */
/** @typedef {{ start: number, end: number, after: string }} Change  Offsets in the file. */
/** @typedef {ReturnType<ReturnType<typeof openSources>['draw']>[number]} Mutant */

// ---- The nodes that can be mutated -----------------------------------------------------------

const SWAPPED = new Map(
  '< <=,<= <,> >=,>= >,=== !==,!== ===,+ -,- +,* /,/ *,% *,&& ||,|| &&,& |,| &,^ &,<< >>,>> <<,>>> <<,+= -=,-= +='
    .split(',')
    .map((pair) => /** @type {[string, string]} */ (pair.split(' '))),
);
const UNMUTATED = [
  ...[Kind.ImportDeclaration, Kind.ExportDeclaration],
  ...[Kind.InterfaceDeclaration, Kind.TypeAliasDeclaration],
];
const TEXTS = [Kind.StringLiteral, Kind.NoSubstitutionTemplateLiteral, Kind.TemplateExpression];

/** @returns {Change[]} */
const replace = (node, ...texts) =>
  texts.map((after) => ({ start: node.getStart(), end: node.end, after }));

/** The constants of loops do not include `true`, which would not end. */
const bend = (condition, ...constants) =>
  condition === undefined ? [] : replace(condition, `!(${condition.getText()})`, ...constants);

const drop = (value) =>
  value === undefined || value.getText() === 'undefined' ? [] : replace(value, 'undefined');

/** Lists the mutants of a node itself. @param {Node} node @returns {Change[]} */
function listChanges(node) {
  switch (node.kind) {
    case Kind.BinaryExpression: {
      const operator = node.operatorToken.getText();
      const [left, right] = [node.left.getText(), node.right.getText()];
      if (operator === '??') return replace(node, `(${left})!`, `(${right})`);
      return SWAPPED.has(operator) ? replace(node.operatorToken, SWAPPED.get(operator)) : [];
    }
    case Kind.IfStatement:
      return bend(node.expression, 'true', 'false');
    case Kind.ConditionalExpression:
      return bend(node.condition, 'true', 'false');
    case Kind.WhileStatement:
    case Kind.DoStatement:
      return bend(node.expression, 'false');
    case Kind.ForStatement:
      return bend(node.condition, 'false');
    case Kind.PrefixUnaryExpression:
      return /^[!-]/.test(node.getText()) ? replace(node, `(${node.operand.getText()})`) : [];
    case Kind.NumericLiteral: {
      if (node.parent.name === node) return [];
      const value = Number(node.getText().replaceAll('_', ''));
      const others = [...new Set([value + 1, value - 1, 0])].filter((other) => other !== value);
      return replace(node, ...others.map((other) => `(${other})`));
    }
    case Kind.TrueKeyword:
      return replace(node, 'false');
    case Kind.FalseKeyword:
      return replace(node, 'true');
    case Kind.StringLiteral:
    case Kind.NoSubstitutionTemplateLiteral:
    case Kind.TemplateExpression: {
      const { kind, body, operatorToken } = node.parent;
      const isUsed = body === node || [Kind.ReturnStatement, Kind.CaseClause].includes(kind);
      const isCompared = ['===', '!=='].includes(operatorToken?.getText());
      return (isUsed || isCompared) && node.getText().length > 2 ? replace(node, "''") : [];
    }
    case Kind.ExpressionStatement:
      return node.getText().startsWith('super(') ? [] : replace(node, ';');
    case Kind.ReturnStatement:
      return drop(node.expression);
    case Kind.ArrowFunction:
      return node.body.kind === Kind.Block ? [] : drop(node.body);
    case Kind.PropertyAccessExpression:
      return node.questionDotToken ? replace(node.questionDotToken, '!.') : [];
    case Kind.ElementAccessExpression:
    case Kind.CallExpression:
      return node.questionDotToken ? replace(node.questionDotToken, '!') : [];
    default:
      return [];
  }
}

/** Lists the nodes below a node that have mutants, without types and texts for people. @param {Node} node */
function* findSites(node) {
  if (isTypeNode(node) || UNMUTATED.includes(node.kind)) return;
  const changes = listChanges(node);
  if (changes.length > 0) yield { node, changes };
  const children = [];
  node.forEachChild((child) => void children.push(child));
  const isMessage = /(?:Error|\blog\.(?:trace|debug|info|warn|error))$/i.test(
    node.arguments === undefined ? '' : node.expression.getText(),
  );
  for (const child of children) {
    if (!(isMessage && TEXTS.includes(child.kind))) yield* findSites(child);
  }
}

/** Inserts a probe where the statement or the function around a node begins. @param {Node} node @param {number} id */
function placeProbe(node, id) {
  const call = `__reach(${id})`;
  const around = (at, before, after) => [
    { at: at.getStart(), text: before },
    { at: at.end, text: after },
  ];
  for (let at = node; ; at = at.parent) {
    const { parent } = at;
    if (parent.statements?.includes(at)) return [{ at: at.getStart(), text: `${call}; ` }];
    if (at.kind === Kind.Parameter && parent.body?.kind === Kind.Block) {
      return [{ at: parent.body.getStart() + 1, text: ` ${call};` }];
    }
    if (parent.kind === Kind.ArrowFunction && at.kind !== Kind.Block) {
      return around(parent.body, `(${call}, (`, '))');
    }
    if ([parent.thenStatement, parent.elseStatement, parent.statement].includes(at)) {
      if (at.kind !== Kind.Block) return around(at, `{ ${call}; `, ' }');
    }
  }
}

// ---- The draw --------------------------------------------------------------------------------

/** Codes of type errors about unused names and imports, which a mutant may leave behind. */
const UNUSED = [6133, 6192, 6196, 6198, 6199];

/** Returns a generator of numbers from 0 to below 1: hashes of a counter. @param {string} seed */
function createRandom(seed) {
  let drawn = 0;
  return () => createHash('sha256').update(`${seed} ${drawn++}`).digest().readUInt32BE() / 2 ** 32;
}

/** Opens the sources of a tree for drawing. */
export function openSources(root) {
  const overlay = new Map();
  const api = new API({ cwd: root, fs: { readFile: (file) => overlay.get(file) } });
  const projects = ['src/tsconfig.json', 'src/explorer/page/tsconfig.json'];
  let snapshot = api.updateSnapshot({
    openProjects: projects.map((file) => path.join(root, file)),
  });
  const programOf = (file) => snapshot.getDefaultProjectForFile(file).program;

  /** Whether a file with another text has no type error. @param {string} file @param {string} text */
  const compiles = (file, text) => {
    overlay.set(file, text);
    snapshot = api.updateSnapshot({ fileChanges: { changed: [file] } });
    const program = programOf(file);
    const found = [program.getSyntacticDiagnostics(file), program.getSemanticDiagnostics(file)];
    overlay.delete(file);
    snapshot = api.updateSnapshot({ fileChanges: { changed: [file] } });
    return found.flat().every(({ code }) => UNUSED.includes(code));
  };

  return {
    close: () => api.close(),

    /** Draws mutants uniformly over the nodes of a directory that can be mutated, without replacement. */
    draw: (directory, { seed, count }) => {
      const random = createRandom(`${seed} ${directory}`);
      const below = path.join(root, 'src', directory);
      const files = fs.readdirSync(below, { recursive: true, encoding: 'utf8' }).sort();
      const sites = files
        .filter((file) => /(?<!\.d)\.tsx?$/.test(file))
        .map((file) => path.join(below, file))
        .flatMap((file) => [...findSites(programOf(file).getSourceFile(file))]);
      const mutants = [];
      while (mutants.length < count && sites.length > 0) {
        const [{ node, changes }] = sites.splice(Math.floor(random() * sites.length), 1);
        const { start, end, after } = changes[Math.floor(random() * changes.length)];
        const { text, fileName } = node.getSourceFile();
        const mutated = text.slice(0, start) + after + text.slice(end);
        if (!compiles(fileName, mutated)) continue;
        mutants.push({
          directory,
          file: path.relative(root, fileName),
          line: text.slice(0, start).split('\n').length,
          before: text.slice(start, end),
          after,
          text,
          mutated,
          probe: (/** @type {number} */ id) => placeProbe(node, id),
        });
      }
      return mutants;
    },
  };
}

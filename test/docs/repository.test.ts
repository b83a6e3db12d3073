import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';

const read = (file: string): string => readFileSync(file, 'utf8');
const forms = '.github/ISSUE_TEMPLATE';
const workflows = '.github/workflows';

const { homepage, bugs, repository } = JSON.parse(read('package.json'));
const address = repository.url.replace(/^git\+|\.git$/g, '');

interface Step {
  readonly run?: string;
  readonly uses?: string;
}

test('package.json names one repository', () => {
  expect([homepage, bugs]).toEqual([`${address}#readme`, `${address}/issues`]);
});

test.each([
  'CONTRIBUTING.md',
  'CODE_OF_CONDUCT.md',
  ...readdirSync(forms).map((file) => join(forms, file)),
])('%s links to the repository in package.json', (file) => {
  const links = read(file).match(/https:\/\/github\.com\/[\w-]+\/[\w-]+/g) ?? [];
  expect(links.filter((link) => link !== address)).toEqual([]);
});

test('the bug form requests version, check and log line', () => {
  const { body } = parse(read(join(forms, 'bug.yml')));
  const required = body.filter((field: { validations?: { required?: boolean } }) => {
    return field.validations?.required;
  });
  expect(required.map(({ id }: { id: string }) => id)).toEqual(
    expect.arrayContaining(['version', 'check', 'log']),
  );
});

describe('the workflows', () => {
  const stepsOf = (file: string): Step[] =>
    Object.values<{ steps?: Step[] }>(parse(read(join(workflows, file))).jobs).flatMap(
      ({ steps = [] }) => steps,
    );

  test('run the suites as .ci/run does', () => {
    expect(stepsOf('ci.yml').map(({ run }) => run)).toContain('.ci/run');
    expect(parse(read(join(workflows, 'ci.yml'))).jobs.check.container.image).toBe('debian:12');
  });

  test('publish the image for two architectures, and the package, after the suites', () => {
    const { jobs } = parse(read(join(workflows, 'release.yml')));
    expect(existsSync(jobs.check.uses)).toBe(true);
    expect([jobs.package.needs, jobs.image.needs]).toEqual(['check', 'check']);
    const steps = stepsOf('release.yml');
    expect(steps.map(({ run }) => run)).toContain('npm publish --provenance');
    expect(JSON.stringify(steps)).toContain('linux/amd64,linux/arm64');
    const targets = [...read('Dockerfile').matchAll(/ AS (\w+)$/gm)].map(([, name]) => name);
    for (const { target } of jobs.image.strategy.matrix.include) expect(targets).toContain(target);
  });
});

test('developers have the version of Node of the image', () => {
  const [, version] = /^ARG NODE_VERSION=(\d+)$/m.exec(read('Dockerfile')) ?? [];
  expect(read('.nvmrc').trim()).toBe(version);
  expect(JSON.parse(read('.devcontainer/devcontainer.json')).image).toContain(`:${version}-`);
});

import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

/** What is compared, by name; only what is installed. */
export function readVersions(): Record<string, string> {
  const versions: Record<string, string | undefined> = {
    Node: process.version,
    sharp: ofPackage('sharp'),
    IPX: ofPackage('ipx'),
    'its sharp': ofPackage('ipx/node_modules/sharp'),
    Fastify: ofPackage('fastify'),
    nginx: ofProgram('/usr/sbin/nginx', '-v'),
    vipsthumbnail: ofProgram('/usr/bin/vipsthumbnail', '--vips-version'),
    Ceph: ofProgram('/usr/bin/ceph', '--version'),
  };
  const known = Object.entries(versions).flatMap(([name, version]) =>
    version === undefined ? [] : [[name, version]],
  );
  return Object.fromEntries(known) as Record<string, string>;
}

function ofPackage(name: string): string {
  const text = readFileSync(`node_modules/${name}/package.json`, 'utf8');
  return (JSON.parse(text) as { version: string }).version;
}

/** The first number with a dot that it prints. */
function ofProgram(program: string, option: string): string | undefined {
  const { stdout, stderr } = spawnSync(program, [option], { encoding: 'utf8' });
  return /\d+\.[\d.]*\d/.exec(`${stdout ?? ''}${stderr ?? ''}`)?.[0];
}

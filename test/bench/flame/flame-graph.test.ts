import { describe, expect, test } from 'vitest';
import { drawFlameGraph } from '../../../bench/flame/flame-graph.ts';
import { readStacks } from '../../../bench/flame/stacks.ts';

/** As `perf script -F comm,pid,ip,sym,dso --no-inline` prints it. */
const RECORDED = `
node 11611 
	          c34b04 read (/usr/lib/x86_64-linux-gnu/libc.so.6)
	    7f47081b34ab JS:*read file:///srv/dist/http/server.js:12:3 (/tmp/perf-11611.map)
	         14cfd1c Builtins_InterpreterEntryTrampoline (/usr/bin/node)
	    7f470805872b [unknown] (/tmp/perf-11611.map)
	          7bbbe6 node::SpinEventLoopInternal (/usr/bin/node)

node 11611 
	    7f47081b34ab JS:^read file:///srv/dist/http/server.js:12:3 (/tmp/perf-11611.map)
	          7bbbe6 node::SpinEventLoopInternal (/usr/bin/node)

libvips worker 17483 
	          1c9ab9 [unknown] (/srv/node_modules/lib/libvips-cpp.so.8.18.7)
	          1c65e9 [unknown] (/srv/node_modules/lib/libvips-cpp.so.8.18.7)
	  54000200000000 [unknown] ([unknown])

node 11611 
	    7f47081b34ab JS:~send file:///srv/node_modules/fastify/lib/reply.js:7:12 (/tmp/perf-11611.map)
	          7bbbe6 node::SpinEventLoopInternal (/usr/bin/node)

node 11611 
	          7bbbe6 node::SpinEventLoopInternal (/usr/bin/node)

`;

describe('stacks of a recording', () => {
  test('have calls from the outermost on, by whose code they are', () => {
    expect(readStacks(RECORDED)).toEqual([
      {
        samples: 1,
        calls: [
          { name: 'node::SpinEventLoopInternal', kind: 'node' },
          { name: 'read http/server:12', kind: 'darkroom' },
          { name: 'read', kind: 'system' },
        ],
      },
      {
        samples: 1,
        calls: [
          { name: 'node::SpinEventLoopInternal', kind: 'node' },
          { name: 'read http/server:12', kind: 'darkroom' },
        ],
      },
      { samples: 1, calls: [{ name: 'libvips-cpp.so.8.18.7', kind: 'imaging' }] },
      {
        samples: 1,
        calls: [
          { name: 'node::SpinEventLoopInternal', kind: 'node' },
          { name: 'send fastify/lib/reply.js:7', kind: 'javascript' },
        ],
      },
      { samples: 1, calls: [{ name: 'node::SpinEventLoopInternal', kind: 'node' }] },
    ]);
  });

  test('are added up where they are alike', () => {
    expect(readStacks(RECORDED.repeat(3)).map(({ samples }) => samples)).toEqual([3, 3, 3, 3, 3]);
  });
});

describe('a flame graph', () => {
  const svg = drawFlameGraph('Main', 'of a test', readStacks(RECORDED));
  const find = (name: string) => {
    const match = new RegExp(
      `<title>${name}: ([\\d.]+) %</title><rect x="([\\d.]+)" y="([\\d.]+)" width="([\\d.]+)"`,
    ).exec(svg);
    const [share = 0, x = 0, y = 0, width = 0] = match?.slice(1).map(Number) ?? [];
    return { share, x, y, width };
  };

  test('gives a call the width of its share, and puts what it calls upon it', () => {
    const loop = find('node::SpinEventLoopInternal');
    const own = find('read http/server:12');
    expect(loop.share).toBe(80);
    expect(own.share).toBe(40);
    expect(own.width).toBeCloseTo(loop.width / 2, 0);
    expect(own.y).toBeLessThan(loop.y);
    expect(own.x).toBeGreaterThanOrEqual(loop.x);
    expect(own.x + own.width).toBeLessThanOrEqual(loop.x + loop.width + 0.1);
  });

  test('has its signs escaped', () => {
    const stack = { samples: 1, calls: [{ name: 'a<b>&c', kind: 'node' as const }] };
    expect(drawFlameGraph('', '', [stack])).toContain('<title>a&#60;b&#62;&#38;c: 100.0 %</title>');
  });
});

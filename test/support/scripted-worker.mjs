/**
 * A worker that does what the original's text says, to see how the pool takes it. Plain JavaScript,
 * since it is forked as it is.
 */
process.on('message', ({ original }) => {
  process.send({ kind: 'begun' });
  const command = Buffer.from(original).toString();
  switch (command) {
    case 'hang':
      // Not even its event loop turns: only SIGKILL ends it.
      for (;;);
    case 'crash':
      return void setImmediate(() => process.abort());
    case 'exit':
      return void setImmediate(() => process.exit(3));
    case 'corrupt':
      return process.send({ kind: 'failed', code: 'UNPROCESSABLE_MEDIA', detail: 'bad bytes' });
    case 'bug':
      return process.send({ kind: 'failed', code: 'INTERNAL_ERROR', detail: 'a bug' });
    case 'environment':
      return reply(JSON.stringify(process.env));
    default:
      return reply(`${process.pid} ${command}`);
  }
});
process.on('SIGTERM', () => undefined);
process.send({ kind: 'ready' });

function reply(text) {
  process.send({ kind: 'rendered', body: Buffer.from(text) });
}

/** The fork server, except that the first process it kills survives, like one that waits for a hanging disk. */
import { ChildProcess } from 'node:child_process';
import { syncBuiltinESMExports } from 'node:module';

const { kill: killProcess } = process;
const { kill: killChild } = ChildProcess.prototype;
let survivor;

process.kill = (processId, signal) => {
  survivor ??= processId;
  return processId === survivor || killProcess(processId, signal);
};
ChildProcess.prototype.kill = function (signal) {
  survivor ??= this.pid;
  return this.pid === survivor || killChild.call(this, signal);
};
syncBuiltinESMExports();
await import('../../../dist/workers/fork-server/main.js');

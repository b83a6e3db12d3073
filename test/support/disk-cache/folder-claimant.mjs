// Claims a folder, prints what came of it, and again when that changes: the lock that was built, and the folder.
const [lockModule, folder] = process.argv.slice(2);
const { claimFolder } = await import(lockModule);
// Keeps the process alive, as a server does.
setInterval(() => undefined, 60_000);
for (;;) {
  const claim = await claimFolder(folder);
  console.log(claim.kind);
  if (claim.kind === 'owned') break;
  await claim.ended;
}

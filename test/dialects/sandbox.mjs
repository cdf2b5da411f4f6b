// Calls every public method of E2B's SDK for JavaScript once, with its result checked,
// against a coppice serve --e2b that E2B_API_URL, E2B_SANDBOX_URL and E2B_API_KEY name.
// EXTRAS is a folder with matplotlib and pandas, and KEEPS is 1 if the server keeps sessions
// on disk. A method that no check names fails, so
// that a new version of the SDK brings no method that was not looked at.
import assert from 'node:assert/strict'
import { Sandbox, Template, Volume, Secret, CommandExitError, FileNotFoundError, NotFoundError, TimeoutError } from '@e2b/code-interpreter'

const rows = []
const seen = new Set()

// works makes a check of a method that has to work.
async function works(name, fn) {
  seen.add(name)
  try {
    await fn()
    rows.push([name, 'works'])
  } catch (err) {
    rows.push([name, 'FAILS: ' + String(err?.stack ?? err).slice(0, 1500)])
  }
}

// refused makes a check of a method that has to be refused, by an error of the SDK.
async function refused(name, status, fn) {
  seen.add(name)
  try {
    await fn()
    rows.push([name, 'FAILS: it was not refused'])
  } catch (err) {
    const ours = String(err?.message).includes(String(status)) && !(err instanceof TypeError)
    rows.push([name, ours ? `refused: ${err.constructor.name}: ${err.message}` : 'FAILS: ' + err?.stack])
  }
}

const until = async (what, fn) => {
  for (let end = Date.now() + 30_000; Date.now() < end; await new Promise((r) => setTimeout(r, 50))) if (await fn()) return
  assert.fail('waited in vain: ' + what)
}
const text = (b) => new TextDecoder().decode(b)

let sbx
await works('Sandbox.create', async () => {
  sbx = await Sandbox.create({ timeoutMs: 300_000, metadata: { test: 'js', 'a b': 'c=d' }, envs: { WHERE: 'sandbox' } })
  assert.match(sbx.sandboxId, /^i[a-z2-7]{20}$/)
})
const id = sbx.sandboxId

// The control plane.
await works('Sandbox.connect', async () => assert.equal((await Sandbox.connect(id)).sandboxId, id))
await works('sandbox.connect', async () => assert.equal((await sbx.connect()).sandboxId, id))
await works('Sandbox.getInfo', async () => assert.equal((await Sandbox.getInfo(id)).metadata['a b'], 'c=d'))
await works('Sandbox.getFullInfo', async () => assert.equal((await Sandbox.getFullInfo(id)).sandboxId, id))
await works('sandbox.getInfo', async () => assert.equal((await sbx.getInfo()).state, 'running'))
await works('Sandbox.list', async () => {
  const other = await Sandbox.create({ metadata: { test: 'js2' } })
  const mine = await Sandbox.list({ query: { metadata: { test: 'js', 'a b': 'c=d' }, state: ['running'] } }).nextItems()
  assert.deepEqual(mine.map((s) => s.sandboxId), [id])
  const pages = Sandbox.list({ limit: 1, order: 'asc' })
  const first = await pages.nextItems()
  assert.equal(first.length, 1)
  assert.ok(pages.hasNext)
  assert.notEqual((await pages.nextItems())[0].sandboxId, first[0].sandboxId)
  assert.equal(await Sandbox.kill(other.sandboxId), true)
})
await works('Sandbox.setTimeout', async () => {
  await Sandbox.setTimeout(id, 600_000)
  assert.ok((await sbx.getInfo()).endAt.getTime() > Date.now() + 500_000)
})
await works('sandbox.setTimeout', async () => {
  await sbx.setTimeout(200_000)
  assert.ok((await sbx.getInfo()).endAt.getTime() < Date.now() + 300_000)
})
await works('Sandbox.getMetrics', async () => assert.ok((await Sandbox.getMetrics(id))[0].cpuCount > 0))
await works('sandbox.getMetrics', async () => assert.ok((await sbx.getMetrics())[0].memTotal > 0))
await works('sandbox.isRunning', async () => assert.equal(await sbx.isRunning(), true))
await works('sandbox.getHost', async () => assert.match(sbx.getHost(80), new RegExp('80-' + id)))
await works('sandbox.getMcpUrl', async () => assert.match(sbx.getMcpUrl(), /mcp/))
await refused('sandbox.getMcpToken', '', () => sbx.getMcpToken())
// copied makes a sandbox whose copies are looked at, and same looks: a copy has what the first
// had, and is apart from it.
const keeps = process.env.KEEPS === '1'
const copied = async () => {
  const s = await Sandbox.create({ timeoutMs: 300_000, envs: { WHERE: 'first' } })
  await s.files.write('f', 'before')
  if (keeps) await s.runCode('kept = [1]')
  return s
}
const same = async (one, first) => {
  assert.notEqual(one.sandboxId, first.sandboxId)
  assert.deepEqual([await one.isRunning(), await first.isRunning(), await one.files.read('f')], [true, true, 'before'])
  await one.files.write('f', 'after')
  assert.equal(await first.files.read('f'), 'before')
  if (keeps) {
    assert.equal((await one.runCode('kept.append(2); kept')).text, '[1, 2]')
    assert.equal((await first.runCode('kept')).text, '[1]')
  }
  assert.equal((await one.commands.run('echo $WHERE')).stdout, 'first\n')
  assert.equal(await one.kill(), true)
}
// What would be lost keeps a sandbox from being copied, and the sandbox goes on.
const memory = async (s, call) => {
  await s.runCode('lost = (i for i in [2])')
  await assert.rejects(call, keeps ? /lost \(generator/ : /501/)
  assert.equal((await s.runCode('next(lost)')).text, '2')
  await s.runCode('del lost')
}
const ids = async (pages) => (await pages.nextItems()).map((s) => s.snapshotId)
const first = await copied()
let shot, named
await works('sandbox.createSnapshot', async () => {
  shot = await first.createSnapshot()
  for (let i = 0; i < 2; i++) await same(await Sandbox.create(shot.snapshotId), first)
  await memory(first, () => first.createSnapshot())
})
await works('Sandbox.createSnapshot', async () => {
  const other = await copied()
  named = await Sandbox.createSnapshot(other.sandboxId, { name: 'mine' })
  assert.deepEqual(named.names, ['mine:default'])
  await same(await Sandbox.create('mine'), other)
  await other.kill()
})
await works('Sandbox.listSnapshots', async () => {
  assert.deepEqual(await ids(Sandbox.listSnapshots()), [named.snapshotId, shot.snapshotId])
  assert.deepEqual(await ids(Sandbox.listSnapshots({ name: 'mine' })), [named.snapshotId])
})
await works('sandbox.listSnapshots', async () => assert.deepEqual(await ids(first.listSnapshots()), [shot.snapshotId]))
await works('Sandbox.deleteSnapshot', async () => {
  for (const one of [shot, named])
    assert.deepEqual([await Sandbox.deleteSnapshot(one.snapshotId), await Sandbox.deleteSnapshot(one.snapshotId)], [true, false])
  assert.deepEqual(await ids(Sandbox.listSnapshots()), [])
})
await first.kill()
await works('sandbox.fork', async () => {
  const s = await copied()
  for (const one of await s.fork({ count: 2, timeoutMs: 60_000 })) await same(one, s)
  await memory(s, () => s.fork())
  await s.kill()
})
await works('Sandbox.fork', async () => {
  const s = await copied()
  const [one] = await Sandbox.fork(s.sandboxId)
  await same(one, s)
  await s.kill()
})
// paused pauses and resumes. What would be lost keeps it from that.
const paused = async (pauseOne) => {
  const s = await Sandbox.create({ timeoutMs: 300_000 })
  const pause = () => pauseOne(s)
  await s.runCode('kept, lost = [1], (i for i in [2])')
  await assert.rejects(pause(), /lost \(generator/)
  assert.equal((await s.runCode('kept, next(lost)')).text, '([1], 2)')
  await s.runCode('del lost')
  assert.deepEqual([await pause(), await pause()], [true, false])
  assert.equal((await s.getInfo()).state, 'paused')
  assert.equal(await s.isRunning(), false)
  assert.deepEqual((await Sandbox.list({ query: { state: ['paused'] } }).nextItems()).map((one) => one.sandboxId), [s.sandboxId])
  await Sandbox.connect(s.sandboxId, { timeoutMs: 200_000 })
  assert.equal((await s.runCode('kept')).text, '[1]')
  await s.kill()
}
for (const [who, of] of [['Sandbox', (s, m, ...a) => Sandbox[m](s.sandboxId, ...a)], ['sandbox', (s, m, ...a) => s[m](...a)]]) {
  const one = (...a) => of(sbx, ...a)
  for (const method of ['pause', 'betaPause'])
    if (keeps) await works(who + '.' + method, () => paused((s) => of(s, method)))
    else await refused(who + '.' + method, 501, () => one(method))
  await refused(who + '.updateNetwork', 501, () => one('updateNetwork', { allowOut: ['1.1.1.1'] }))
}

// Files.
await works('files.write', async () => {
  const info = await sbx.files.write('dir/a.txt', 'hällo')
  assert.equal(info.name, 'a.txt')
  assert.equal((await sbx.files.write('b.bin', new Uint8Array([0, 255]).buffer, { useOctetStream: true, gzip: true })).name, 'b.bin')
  assert.deepEqual((await sbx.files.write('m.txt', 'm', { metadata: { Author: 'Ann B' } })).metadata, { author: 'Ann B' })
  assert.deepEqual((await sbx.files.getInfo('m.txt')).metadata, { author: 'Ann B' })
})
await works('files.writeFiles', async () => {
  const list = await sbx.files.writeFiles([{ path: 'dir/1', data: 'one' }, { path: '/home/user/dir/2', data: 'two' }])
  assert.deepEqual(list.map((f) => f.name), ['1', '2'])
})
await works('files.read', async () => {
  assert.equal(await sbx.files.read('/home/user/dir/a.txt'), 'hällo')
  assert.deepEqual([...(await sbx.files.read('b.bin', { format: 'bytes' }))], [0, 255])
  assert.equal(await (await sbx.files.read('dir/2', { format: 'blob' })).text(), 'two')
  let got = ''
  for await (const chunk of await sbx.files.read('dir/1', { format: 'stream' })) got += text(chunk)
  assert.equal(got, 'one')
  await assert.rejects(sbx.files.read('none'), FileNotFoundError)
})
await works('files.list', async () => assert.deepEqual((await sbx.files.list('dir')).map((e) => e.name), ['1', '2', 'a.txt']))
await works('files.exists', async () => assert.deepEqual([await sbx.files.exists('dir/1'), await sbx.files.exists('dir/9')], [true, false]))
await works('files.getInfo', async () => {
  const info = await sbx.files.getInfo('dir/1')
  assert.deepEqual([info.size, info.type, info.permissions], [3, 'file', '-rw-r--r--'])
})
await works('files.makeDir', async () => assert.deepEqual([await sbx.files.makeDir('new/er'), await sbx.files.makeDir('new/er')], [true, false]))
await works('files.rename', async () => assert.equal((await sbx.files.rename('dir/1', 'new/one')).name, 'one'))
await works('files.remove', async () => {
  await sbx.files.remove('new')
  assert.equal(await sbx.files.exists('new'), false)
})
await works('files.watchDir', async () => {
  const events = []
  const handle = await sbx.files.watchDir('dir', (e) => events.push(e), { recursive: true, includeEntry: true })
  await sbx.files.write('dir/2', 'changed')
  await until('an event', () => events.some((e) => e.type === 'write' && e.name === '2'))
  seen.add('watchHandle.stop')
  await handle.stop()
  rows.push(['watchHandle.stop', 'works'])
})
await works('sandbox.uploadUrl', async () => {
  const form = new FormData()
  form.append('file', new Blob(['by address']))
  const answer = await fetch(await sbx.uploadUrl('up.txt', { useSignatureExpiration: 60_000 }), { method: 'POST', body: form })
  assert.equal(answer.status, 200)
})
await works('sandbox.downloadUrl', async () => assert.equal(await (await fetch(await sbx.downloadUrl('up.txt'))).text(), 'by address'))

// Commands.
await works('commands.run', async () => {
  const lines = []
  const r = await sbx.commands.run('echo $WHERE $HERE; echo e >&2; pwd', { envs: { HERE: 'command' }, cwd: '/home/user/dir', onStdout: (l) => lines.push(l) })
  assert.match(r.stdout, /^sandbox command\n.*dir\n$/)
  assert.equal(r.stderr, 'e\n')
  assert.equal(lines.join(''), r.stdout)
  await assert.rejects(sbx.commands.run('exit 7'), (e) => e instanceof CommandExitError && e.exitCode === 7)
  await assert.rejects(sbx.commands.run('sleep 60', { timeoutMs: 300 }), TimeoutError)
})
let handle
await works('commands.sendStdin', async () => {
  handle = await sbx.commands.run('while read x; do echo got $x; done; echo over', { background: true, stdin: true })
  await sbx.commands.sendStdin(handle.pid, 'one\n')
  await until('an echo', () => handle.stdout === 'got one\n')
})
await works('commands.list', async () => {
  const p = (await sbx.commands.list()).find((p) => p.pid === handle.pid)
  assert.deepEqual([p.cmd, p.args], ['/bin/bash', ['-l', '-c', 'while read x; do echo got $x; done; echo over']])
})
await works('commands.connect', async () => {
  const again = await sbx.commands.connect(handle.pid)
  await sbx.commands.sendStdin(handle.pid, 'two\n')
  await until('an echo', () => again.stdout === 'got two\n')
  await works('commandHandle.disconnect', () => again.disconnect())
})
await works('commands.closeStdin', async () => {
  await sbx.commands.closeStdin(handle.pid)
  await works('commandHandle.wait', async () => assert.equal((await handle.wait()).stdout, 'got one\ngot two\nover\n'))
})
await works('commands.kill', async () => {
  const h = await sbx.commands.run('sleep 600', { background: true })
  assert.equal(await sbx.commands.kill(h.pid), true)
  await assert.rejects(h.wait(), CommandExitError)
  assert.equal(await sbx.commands.kill(h.pid), false)
})
await works('commandHandle.kill', async () => assert.equal(await (await sbx.commands.run('sleep 600', { background: true })).kill(), true))
await works('commandHandle.sendStdin', async () => {
  const h = await sbx.commands.run('read x; echo $x', { background: true, stdin: true })
  await h.sendStdin('direct\n')
  assert.equal((await h.wait()).stdout, 'direct\n')
})
await works('commandHandle.closeStdin', async () => {
  const h = await sbx.commands.run('cat', { background: true, stdin: true })
  await h.closeStdin()
  assert.equal((await h.wait()).exitCode, 0)
})

// Terminals.
let pty, shown = ''
await works('pty.create', async () => {
  pty = await sbx.pty.create({ cols: 90, rows: 20, onData: (d) => (shown += text(d)), envs: { PS1: '$ ' } })
  assert.ok(pty.pid > 0)
})
await works('pty.sendInput', async () => {
  await sbx.pty.sendInput(pty.pid, new TextEncoder().encode('stty size\n'))
  await until('the size', () => shown.includes('20 90'))
})
await works('pty.resize', async () => {
  // At its prompt, readline sets the size that it has read before, which may be the old one.
  await sbx.pty.sendInput(pty.pid, new TextEncoder().encode('until [ "$(stty size)" = "10 70" ]; do sleep .1; done; echo re""sized\n'))
  await until('the command', () => shown.includes('re""sized\r\n'))
  await sbx.pty.resize(pty.pid, { cols: 70, rows: 10 })
  await until('the new size', () => shown.includes('resized\r\n'))
})
await works('pty.connect', async () => {
  let more = ''
  await sbx.pty.connect(pty.pid, { onData: (d) => (more += text(d)) })
  await sbx.pty.sendInput(pty.pid, new TextEncoder().encode('echo a""gain\n'))
  await until('an echo', () => more.includes('again\r\n'))
})
await works('pty.kill', async () => assert.equal(await sbx.pty.kill(pty.pid), true))

// Code.
await works('sandbox.runCode', async () => {
  const out = []
  const e = await sbx.runCode('print(1); x = 41; x + 1', { onStdout: (m) => out.push(m.line) })
  assert.deepEqual([e.text, e.logs.stdout, out, e.executionCount], ['42', ['1\n'], ['1\n'], 1])
  assert.equal((await sbx.runCode('1/0')).error.name, 'ZeroDivisionError')
  assert.equal((await sbx.runCode('import os; os.environ["WHERE"] + os.environ["FOR"]', { envs: { FOR: 'call' } })).text, 'sandboxcall')
  assert.equal((await sbx.runCode('os.environ.get("FOR", "gone")')).text, 'gone')
  await assert.rejects(sbx.runCode('import time; time.sleep(600)', { timeoutMs: 500 }), TimeoutError)
  assert.equal((await sbx.runCode('x')).text, '41')
  await assert.rejects(sbx.runCode('1', { language: 'r' }), NotFoundError)
  const chart = await sbx.runCode(`
    import sys; sys.path.insert(0, ${JSON.stringify(process.env.EXTRAS)})
    import matplotlib.pyplot as plt
    plt.bar(["a", "b"], [3, 4]); plt.title("T"); plt.ylabel("Length (m)"); plt.show()`)
  assert.ok(chart.results[0].png, chart.error?.traceback)
  assert.deepEqual(chart.results[0].extra, {})
  assert.deepEqual([chart.results[0].chart.type, chart.results[0].chart.title, chart.results[0].chart.y_unit], ['bar', 'T', 'm'])
  assert.deepEqual(chart.results[0].chart.elements.map((b) => [b.label, b.value]), [['a', 3], ['b', 4]])
  const table = await sbx.runCode('import pandas; pandas.DataFrame({"a": [1, 2]})')
  assert.deepEqual(table.results[0].data, { a: [1, 2] })
  const prefix = (await sbx.runCode('import sys; sys.prefix')).text
  for (const python of ['python3', 'python']) // what commands install, code imports
    assert.equal((await sbx.commands.run(python + " -c 'import sys; print(sys.prefix)'")).stdout, prefix + '\n')
  assert.ok((await sbx.commands.run('pip --version')).stdout.includes(prefix + '/'))
})
let context
await works('sandbox.createCodeContext', async () => {
  context = await sbx.createCodeContext({ cwd: '/home/user/dir', language: 'python' })
  assert.match((await sbx.runCode('import os; y = 1; os.getcwd()', { context })).text, /dir$/)
})
await works('sandbox.listCodeContexts', async () => assert.equal((await sbx.listCodeContexts()).at(-1).id, context.id))
await works('sandbox.restartCodeContext', async () => {
  await sbx.restartCodeContext(context)
  assert.equal((await sbx.runCode('y', { context })).error.name, 'NameError')
})
await works('sandbox.removeCodeContext', async () => {
  await sbx.removeCodeContext(context.id)
  await assert.rejects(sbx.runCode('1', { context }), NotFoundError)
})

// Git is what the sandbox has: the methods run it.
const folder = (await sbx.files.getInfo('.')).path // git runs as a process, which knows true paths
const repo = folder + '/repo', remote = folder + '/remote.git'
await works('git.init', async () => {
  await sbx.git.init(repo, { initialBranch: 'main' })
  await sbx.git.init(remote, { bare: true, initialBranch: 'main' })
  assert.ok(await sbx.files.exists('repo/.git'))
})
const full = (await sbx.files.getInfo('remote.git')).path
await works('git.configureUser', () => sbx.git.configureUser('Ann', 'ann@example.org', { scope: 'local', path: repo }))
await works('git.setConfig', () => sbx.git.setConfig('color.ui', 'never', { scope: 'local', path: repo }))
await works('git.getConfig', async () => assert.equal(await sbx.git.getConfig('color.ui', { scope: 'local', path: repo }), 'never'))
await works('git.status', async () => {
  await sbx.files.write('repo/a', '1')
  assert.equal((await sbx.git.status(repo)).fileStatus[0].name, 'a')
})
await works('git.add', () => sbx.git.add(repo))
await works('git.commit', async () => assert.equal((await sbx.git.commit(repo, 'first')).exitCode, 0))
await works('git.createBranch', () => sbx.git.createBranch(repo, 'side'))
await works('git.checkoutBranch', () => sbx.git.checkoutBranch(repo, 'main'))
await works('git.branches', async () => assert.deepEqual((await sbx.git.branches(repo)).branches.sort(), ['main', 'side']))
await works('git.deleteBranch', () => sbx.git.deleteBranch(repo, 'side', { force: true }))
await works('git.remoteAdd', () => sbx.git.remoteAdd(repo, 'origin', full))
await works('git.remoteGet', async () => assert.equal(await sbx.git.remoteGet(repo, 'origin'), full))
await works('git.push', () => sbx.git.push(repo, { remote: 'origin', branch: 'main', setUpstream: true }))
await works('git.pull', () => sbx.git.pull(repo, { remote: 'origin', branch: 'main' }))
await works('git.clone', async () => {
  await sbx.git.clone(full, { path: folder + '/copy' })
  assert.equal(await sbx.files.read('copy/a'), '1')
})
await works('git.restore', async () => {
  await sbx.files.write('repo/a', '2')
  await sbx.git.restore(repo, { paths: ['a'] })
  assert.equal(await sbx.files.read('repo/a'), '1')
})
await works('git.reset', () => sbx.git.reset(repo, { mode: 'hard' }))
await works('git.dangerouslyAuthenticate', () => sbx.git.dangerouslyAuthenticate({ username: 'ann', password: 'not-a-password', host: 'example.org' }))

// The end.
await works('sandbox.kill', async () => {
  const running = sbx.runCode('import time; time.sleep(600)', { timeoutMs: 600_000 })
  const dropped = assert.rejects(running, TimeoutError)
  await new Promise((r) => setTimeout(r, 1000))
  assert.equal(await sbx.kill(), true)
  await dropped
  assert.equal(await sbx.isRunning(), false)
})
await works('Sandbox.kill', async () => assert.equal(await Sandbox.kill(id), false))

// What there is not: other products of E2B, which belong to no sandbox. They are counted apart.
await works('Template.exists', async () => assert.deepEqual([await Template.exists('base'), await Template.exists('none')], [true, false]))
await refused('Template.build', 501, () => Template.build(Template().fromBaseImage(), 'mine'))
await works('Volume.list', async () => assert.deepEqual(await Volume.list(), []))
await refused('Volume.create', 501, () => Volume.create('mine'))
await refused('Secret.create', 501, () => Secret.create('mine', { value: 'x' }))

// Every method was looked at. Those that the SDK does not document are left out.
const inner = {
  Sandbox: ['connectSandbox', 'createSandbox', 'forkSandbox', 'resolveOpts'], sandbox: ['fileUrl', 'getJupyterRequestUrl', 'handleRequestError', 'resolveApiOpts'],
  files: [], commands: ['start'], pty: [], git: ['getRemoteUrl', 'hasUpstream', 'resolveRemoteName', 'runGit', 'runShell', 'withRemoteCredentials'],
  commandHandle: ['flushDecoders', 'handleEvents', 'iterateEvents'],
}
const objects = { Sandbox, sandbox: Sandbox.prototype, ...Object.fromEntries(['files', 'commands', 'pty', 'git'].map((k) => [k, Object.getPrototypeOf(sbx[k])])), commandHandle: Object.getPrototypeOf(handle) }
for (const [name, object] of Object.entries(objects))
  for (let o = object; o && o !== Object.prototype && o !== Function.prototype; o = Object.getPrototypeOf(o))
    for (const key of Object.getOwnPropertyNames(o))
      if (key !== 'constructor' && typeof Object.getOwnPropertyDescriptor(o, key).value === 'function' && !key.startsWith('_') && !/^[A-Z]/.test(key) && !inner[name].includes(key) && !seen.has(`${name}.${key}`))
        rows.push([`${name}.${key}`, 'FAILS: no check names it'])
console.log(JSON.stringify(rows))
process.exit(0)

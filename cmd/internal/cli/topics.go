package cli

import (
	"github.com/spf13/cobra"
)

// topics are help texts without a command: coppice help exit-codes.
func topics() []*cobra.Command {
	return []*cobra.Command{
		{Use: "exit-codes", Short: "What the exit codes mean", Long: `The exit codes of coppice run, notebook run and tool run:

  0    every cell ran to its end, or one ended with sys.exit() or sys.exit(0)
  1    a cell raised, or a tool failed
  2    the command line is wrong, and nothing was run; or what cells show could not
       be written to a notebook
  70   the kernel was lost, or the code never reached one; or the coppice serve
       that had it was killed, and what became of the code is not known
  124  the timeout passed
  130  cancelled: Ctrl-C, or the reader of the output left

coppice workspace exec has the exit code of its program, 128 and the number of the
signal when INT, KILL or TERM ended it. Other commands use

  0    it was done, or all is well
  1    it could not be done, or what was asked about is not well: coppice doctor
       when a check failed, gateway status when none runs, setup --check when the
       environment is not ready, env when no run is possible
  2    the command line is wrong; nothing was done
  130  cancelled

With --json the object on standard output says the same in "outcome", "healthy"
or "state". Of code that ended itself, as with sys.exit(0), the outcome is "error":
cells behind it were not run.`},
		{Use: "environment", Short: "The environment variables that are read", Long: `COPPICE_PY                which tools agents get: 0 or bash, 1 or py, mix or both
COPPICE_PYTHON_GATEWAY_URL
                          a Jupyter server that someone else runs; several,
                          separated by commas, share the sessions
COPPICE_PYTHON_GATEWAY_TOKEN
                          what opens it; several servers have one for all, or one
                          each in the same order, separated by commas
COPPICE_PYTHON_SKIP_CHECK=1
                          takes it for granted that Python and its packages are there
COPPICE_PYTHON_IPC_TRACE=1
                          notes what passes between host and kernels, without what
                          it says, in ~/.coppice/agent/trace
COPPICE_DEBUG_STARTUP=1   prints the stages of the start with their times
COPPICE_ARTIFACTS_DIR     where outputs go that are too long for a result
COPPICE_SESSION_FILE      else they go beside this file
OTEL_EXPORTER_OTLP_ENDPOINT
                          where traces go, over HTTP; OpenTelemetry's other
                          variables count too (OTEL_SERVICE_NAME, ...)
COPPICE_HOME              holds .coppice, in place of the home directory
COPPICE_TOOLS             the folder of tools
COPPICE_TOKEN             what opens coppice serve, in place of a token made for it
                          (a newline at its end, as a file leaves it, is not part of it)
COPPICE_SANDBOX_TOKEN     what coppice-fleet front shows to its sandboxes
COPPICE_IMAGES            how pictures are shown on a terminal: kitty, iterm2, sixel,
                          blocks or none (default: what the terminal is known for)
COPPICE_GATEWAY_KERNELS   how many kernels a shared gateway takes that is started;
                          when one is full, another is used (default: 150)
COPPICE_GATEWAY_NO_FORK   1: the kernels of a gateway are spawned, which takes longer
                          and more memory than to fork them
COPPICE_START_TIMEOUT     how long a kernel, or the process that it comes from, may
                          take to start: 90s, 2m or seconds (default: 2m)
COPPICE_INTERRUPT_GRACE   how long interrupted code has to stop before its kernel is
                          ended (default: 1.5s)
COPPICE_CALL_TIMEOUT      how long a call may take that names no timeout: 90s, 5m,
                          seconds or none (default: 10m); coppice run and repl
                          have no such limit
COPPICE_KEEP_SESSIONS     1: the sessions of coppice serve outlive it when it is killed
                          (see --keep-sessions)
COPPICE_HIBERNATE         whether coppice serve keeps sessions on disk that have no
                          kernel: never, lossless or lossy (default: never)
COPPICE_ISOLATION         what sessions are kept from: off, privileges, landlock,
                          seccomp, user, bubblewrap, gvisor or strongest
                          (default: privileges)
COPPICE_ISOLATION_WRITE, COPPICE_ISOLATION_READ
                          folders that such sessions may change, in place of the
                          working directory, and others to read; a list as PATH is
COPPICE_ISOLATION_NETWORK=1, COPPICE_ISOLATION_USERS=1
                          lets them use the network; gives each a user of its own
COPPICE_ISOLATION_LOOPBACK=1, COPPICE_ISOLATION_HOSTS
                          lets them connect within this machine; hosts that they may
                          reach through a proxy, with commas between them
COPPICE_MAX_MEMORY        how much memory a session may take: 512M, 2G or bytes
COPPICE_MAX_CPU, COPPICE_MAX_RUNTIME
                          how long a cell may use a processor, and may run: 90s, 2m
COPPICE_MAX_FILES, COPPICE_MAX_PROCESSES, COPPICE_MAX_PROCESSORS
                          how many a session may have open, have started, keep busy
COPPICE_MAX_OUTPUT        how much text a result holds (default: 50K)
COPPICE_MAX_ARTIFACT      how much of one output is kept in a file (default: 4G)
COPPICE_PASS_ENV          variables that kernels see besides: TZ,HTTPS_PROXY,CUDA_*
VIRTUAL_ENV, CONDA_PREFIX the active environment, whose Python is taken first
NO_COLOR                  no colours

What is shown with 1 is a switch: any value but 0, false, no and off switches it on.
COPPICE_GATEWAY_NO_FORK takes 0 and 1 alone.

Eight of these have an older name, which counts where the newer one is not set: PI_PY,
PI_PYTHON_GATEWAY_URL, PI_PYTHON_GATEWAY_TOKEN, PI_PYTHON_SKIP_CHECK,
PI_PYTHON_IPC_TRACE, PI_DEBUG_STARTUP, PI_ARTIFACTS_DIR and PI_SESSION_FILE.

Each COPPICE_MAX_... and COPPICE_ISOLATION... is a flag, too, of run, repl, serve,
mcp and notebook run, which comes before it. An isolation from landlock on, and all
limits of sessions but COPPICE_MAX_RUNTIME, take the runner backend (--backend
runner). Where a program or a flag names the isolation, the variables that say more
about it are not read.

Kernels see the search path, the home, the locale and what begins with LC_, XDG_
and PI_, but nothing that looks like a secret: coppice env --json lists both. The
time zone, proxies, certificates and what CUDA needs are not among them: name them
in COPPICE_PASS_ENV or with --pass-env. What is named passes as it is, also with a
password in it; a name with * brings no secrets along. A session with COPPICE_CHARTS=1
in its own environment shows the data of charts and tables beside their pictures.`},
		{Use: "files", Short: "The files that are kept, and where", Long: `All of it is in ~/.coppice (or COPPICE_HOME/.coppice), for its owner alone:

  python-env/               the Python environment of coppice setup
  agent/modules/*.py        your own modules, for all sessions
  agent/pycache/            what those offer, by their content
  agent/starts/             what makes starts quicker: what interpreters have said of
                            themselves, and code of ours as they have compiled it
  agent/python-gateway/     the shared gateways, their token, and kept sessions
  hibernated/               sessions on disk, for 30 days, and checkpoints with names, for
                            90 days; up to 16 GiB
  hibernate.key             the key that seals them; they are not encrypted
  agent/trace/              with COPPICE_PYTHON_IPC_TRACE: at most 64 MiB for a program
  artifacts/                long outputs, for 7 days and up to 2 GiB
  workspaces/               the folders of workspaces that name none of their own
  kept/                     what the next server takes over, with --keep-sessions
  run/                      the socket of coppice serve, and the page that signs in
  tool-runs/                the files that tools have made
  cache/                    the code of tools, as Python has compiled it
  repl_history.jsonl        what was typed into coppice repl
  mcp-token, serve.json     what opens coppice mcp --http and coppice serve

and in a project

  .coppice/modules/*.py     its modules; one takes the place of yours by its name

A gateway has a folder cpk-* for temporary files, which goes with it. coppice
doctor looks after all of this.`},
	}
}

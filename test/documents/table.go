package documents

// entry is what is known of a block, besides what it says itself.
type entry struct {
	// first is how its first line begins; no other block of the document begins so.
	first string
	// not is why it cannot be run, and what holds it in place of that. Empty: it is run.
	not string
	// before are commands that the document takes for granted at this place.
	before string
	// prelude are lines that a program takes for granted.
	prelude string
	// want must be in what a program prints.
	want string
	// lines are those of a block of shell of which more is known.
	lines []line
}

// line is what is known of a command in a block of shell.
type line struct {
	// first is how it begins.
	first string
	// not is why it is not run as it stands; instead is what is run in its place, if anything.
	not, instead string
	// want must be in what it prints.
	want string
	// fails is that it has to; any is that it may.
	fails, any bool
}

const (
	published  = "it installs what is published; make test-install installs the same way from a server that is there"
	terminal   = "it needs a terminal; "
	browser    = "it opens a browser"
	foreground = "the lines after it are for another terminal"
	shown      = "it shows what was printed, and nobody types it"
	needsE2B   = "it needs E2B's SDK; make test-dialects calls every method of it"
	background = "coppice serve &"
)

// table has the entries of the blocks, by document, in the order of the blocks.
var table = map[string][]entry{
	"README.md": {
		{first: "curl -fsSL", not: published},
		{first: "coppice run -c 'x = 40'", lines: []line{
			{first: "coppice run", want: "42"},
			{first: "coppice repl", not: terminal + "test/repl types into it"},
			{first: "coppice serve --open", not: browser, instead: background},
		}},
		{first: "import coppice", want: "42"},
		{first: "import { find }", want: "42"},
		{first: "supervisor", not: shown},
		{first: "make demo", not: "this runs within make; the demo has a test of its own"},
	},
	"docs/install.md": {{first: "curl -fsSL", not: published}},
	"docs/clients.md": {
		{first: "import coppice", before: background, want: "ok 6\n6\n3 numbers.txt"},
		{first: "import { find }", want: "ok 6\n6\n3 numbers.txt"},
	},
	"docs/commands.md": {
		{first: "coppice run -c", before: `printf '# %%%% load\nx = 40\n# %%%%\nprint(x + 2)\n' >analysis.py`, lines: []line{
			{first: "coppice run -c", want: "42"},
			{first: "coppice run analysis.py", want: "42"},
			{first: "echo", want: `"outcome"`},
		}},
	},
	"docs/e2b.md": {
		{first: "coppice serve --e2b"},
		{first: "from e2b_code_interpreter", not: needsE2B},
	},
	"docs/fleet.md": {
		{first: "export COPPICE_TOKEN", not: "it needs coppice-fleet, which links NATS; make test-adapters runs such a fleet"},
		{first: "coppice: looking", not: shown},
		{first: "$ COPPICE_HOME=$PWD/3", not: shown},
		{first: "$ COPPICE_HOME=$PWD/2", not: shown},
		{first: "coppice-fleet serve --fleet 'etcds:", not: "it needs an etcd and a Kubernetes; make test-engines runs such fleets"},
		{first: "rules:", not: shown},
		{first: "coppice-fleet serve --fleet 'etcds://10.0.0.1:2379' --fleet-listen", not: "it needs certificates and an etcd; make test-engines runs such nodes"},
		{first: "coppice token create", not: "it needs certificates and coppice-fleet; make test-adapters runs such tenants"},
		{first: "COPPICE_TOKEN=$CLIENTS", not: "it needs certificates and a Kubernetes with agent-sandbox; make test-engines runs such fronts"},
		{first: "rules:", not: shown},
		{first: "Coppice-Node", not: shown},
		{first: "(umask 077", not: "it needs coppice-fleet and a folder that machines share; make test-adapters runs such nodes"},
		{first: "  the session begins anew", not: shown},
		{first: "coppice-fleet serve --fleet nats:", not: "it needs coppice-fleet, which links NATS; make test-adapters runs such a fleet"},
	},
	"docs/hibernation.md": {
		{first: "coppice serve --hibernate", lines: []line{
			{first: "coppice serve", not: foreground, instead: "coppice serve --hibernate lossy &"},
			{first: "coppice sessions list", not: "its kernel takes a moment to end", instead: "until coppice sessions list | grep hibernated; do sleep 0.2; done", want: "work"},
			{first: "coppice run --session work -c 'x + 1'", want: "42"},
		}},
		{first: "coppice run --session train", lines: []line{
			{first: "coppice sessions checkpoint train", want: "trained"},
			{first: "coppice run --session another", want: "'weights'"},
		}},
	},
	"docs/image.md": {
		{first: "skopeo copy", not: "it needs the image and what runs it; make test-image runs it with crun or runc"},
		{first: "COPPICE_TOKEN=...", not: "the token is the reader's; make test-image asks the server of the image in this way"},
	},
	"docs/jupyter.md": {
		{first: "coppice serve --jupyter"},
		{first: "from os import environ", not: "it needs jupyter_kernel_client; make test-jupyter drives a server with jupyter_kernel_client"},
	},
	"docs/results.md": {
		{first: "coppice serve --backend runner", lines: []line{
			{first: "coppice run --session demo -c 'import os", fails: true, want: "state lost: all variables are gone"},
			{first: "coppice run --session demo -c '\"x\" in dir()'", want: "False"},
		}},
	},
	"docs/server.md": {
		{first: "coppice serve &", lines: []line{
			{first: "coppice run --session work -c 'x + 2'", want: "42"},
			{first: "coppice top", not: terminal + "the tests of cmd/internal/top draw it"},
		}},
		{first: "coppice workspace create", before: "mkdir data && echo 1,2 >data/table.csv", lines: []line{
			{first: "coppice run", want: "['table.csv']"},
			{first: "coppice workspace exec etl -t", not: terminal + "without one there is no -t", instead: "coppice workspace exec etl -- bash -c 'cat data/table.csv'", want: "1,2"},
		}},
		{first: "coppice token create --tenant acme", before: "kill %1 && wait %1; " + certificate, lines: []line{
			{first: "coppice serve --listen 0.0.0.0:7443", not: "a test listens on no address that others reach", instead: "coppice serve --listen 127.0.0.1:7443 --tls-cert cert.pem --tls-key key.pem --tokens ~/.coppice/tokens.json --unconfined-tenants &"},
		}},
		{first: "curl --cacert", lines: []line{
			{first: "curl", not: "the name of the machine is the reader's", instead: `curl -sS --fail --cacert cert.pem -H "Authorization: Bearer $(cat acme.token)" https://localhost:7443/api/sessions`, want: `"sessions"`},
		}},
	},
	"docs/tools.md": {
		{first: "coppice tool new", lines: []line{
			{first: "coppice tool run", want: "HELLO"},
			{first: "coppice serve --tools", not: foreground, instead: "coppice serve --tools ./tools &"},
		}},
	},
	"docs/tutorials/agent.md": {
		{first: "coppice serve &", lines: []line{{first: "coppice health", want: "http://127.0.0.1:7788"}}},
		{first: "import coppice", want: "ok kept 12.57"},
		{first: "import { find }", want: "ok kept 12.57"},
	},
	"docs/tutorials/deploy.md": {
		{first: "coppice serve --backend runner"},
		{first: "kill %1", lines: []line{
			{first: "kill %1", any: true},
			{first: "coppice run", want: "[1, 2, 3]"},
		}},
	},
	"docs/tutorials/e2b.md": {
		{first: "coppice serve --e2b"},
		{first: "from e2b_code_interpreter", not: needsE2B},
	},
	"docs/tutorials/limits.md": {
		{first: "coppice run --backend runner --max-memory", lines: []line{
			{first: "coppice run --backend runner --max-memory", fails: true, want: "512"},
			{first: "coppice run --backend runner --max-cpu", fails: true, want: "10"},
		}},
		{first: "coppice serve --backend runner", lines: []line{
			{first: "coppice serve", not: "not every kernel has Landlock", instead: "coppice serve --backend runner --max-memory 2G --max-runtime 5m &"},
		}},
		{first: "coppice doctor --quick", lines: []line{{first: "coppice doctor", any: true, want: "isolation"}}},
		{first: "coppice workspace create"},
	},
	"docs/tutorials/watch.md": {
		{first: "coppice top", not: terminal + "the tests of cmd/internal/top draw it"},
		{first: "coppice serve --open", lines: []line{{first: "coppice serve", not: browser, instead: background}}},
		{first: "coppice health --json", before: "coppice run --session work -c 'print(6 * 7)'", lines: []line{
			{first: "coppice health", want: `"healthy":true`},
			{first: "coppice sessions list", want: `"work"`},
			{first: "coppice sessions logs", want: "42"},
		}},
		{first: "scrape_configs:", not: shown},
	},
	"clients/jupyter/README.md": {{first: "pip install coppice-kernel", not: "it needs Jupyter and its browser; make test-jupyter runs the kernel with nbconvert and papermill"}},
	"clients/python/README.md": {
		{first: "coppice serve &"},
		{first: "import coppice", want: "0\n1\n2\n"},
		{first: "with coppice.Client()", prelude: "import coppice\n", want: "b\na\n"},
	},
	"clients/typescript/README.md": {
		{first: "coppice serve &"},
		{first: "import { find }", want: "0\n1\n2\n"},
		{first: "const place", prelude: "import { find } from \"@coppice/client/node\";\nconst client = await find();\n", want: "b\na\n"},
	},
}

// certificate makes what a server needs that others reach.
const certificate = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 1 -subj /CN=localhost -addext subjectAltName=DNS:localhost -keyout key.pem -out cert.pem"

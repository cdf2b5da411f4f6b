package pysrc

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/coppice-run/coppice/internal/pylit"
)

//go:embed kernel_start.py
var kernelStart string

// startModule is the module that prepares a kernel.
const startModule = "coppice_kernel"

// KernelSession is what a kernel learns of the session that it is for.
type KernelSession struct {
	// Cwd is its working directory, "" to stay. Remote says that it need not exist.
	Cwd    string
	Remote bool
	// Env is added to the environment. Keep, when it is not nil, names the
	// variables that stay of those that begin with PI_.
	Env  map[string]string
	Keep []string
	// URL and Token are where and by what right Session calls its host; without
	// URL, calls fail with an error that says so.
	URL, Token, Session string
	// Helpers is the MIME type of the helpers' status events. "": no helpers.
	Helpers string
	// Files is how many files its code may have open. 0: as many as the system says.
	Files int
}

// KernelModules is what the script of our own kernels prepares them with, as JSON:
// the sources by module name with the file names that tracebacks show, and the tag
// that names them all. A kernel that has them needs no more than [KernelBegin].
var KernelModules = sync.OnceValues(func() ([]byte, error) {
	sources, err := kernelSources()
	if err != nil {
		return nil, err
	}
	out, err := json.Marshal(struct {
		Tag     string          `json:"tag"`
		Sources json.RawMessage `json:"sources"`
	}{tag(sources), sources})
	if err != nil {
		return nil, fmt.Errorf("write the Python sources: %w", err)
	}
	return out, nil
})

// kernelSources are the modules of a kernel, as JSON.
var kernelSources = sync.OnceValues(func() (json.RawMessage, error) {
	calls, err := files.ReadFile(name + "/hostcalls.py")
	if err != nil {
		return nil, fmt.Errorf("read an embedded Python file: %w", err)
	}
	env, err := files.ReadFile(name + "/callenv.py")
	if err != nil {
		return nil, fmt.Errorf("read an embedded Python file: %w", err)
	}
	charts, err := files.ReadFile(name + "/charts.py")
	if err != nil {
		return nil, fmt.Errorf("read an embedded Python file: %w", err)
	}
	sources := map[string][2]string{
		callEnvModule:    {"<coppice>/" + callEnvModule + ".py", string(env)},
		startModule:      {"<coppice>/kernel.py", kernelStart},
		hostCallsModule:  {"<coppice>/" + hostCallsModule + ".py", string(calls)},
		kernelModule:     {"<coppice>/" + kernelModule + ".py", kernelCell},
		"coppice_output": {"<coppice>/output.py", kernelOutput},
		"coppice_locate": {"<coppice>/locate.py", locate},
		"coppice_charts": {"<coppice>/charts.py", string(charts)},
	}
	all, err := modules()
	if err != nil {
		return nil, err
	}
	for module, source := range all {
		if module == preludeName || strings.HasPrefix(module, preludeName+".") {
			sources[module] = source
		}
	}
	out, err := json.Marshal(sources)
	if err != nil {
		return nil, fmt.Errorf("write the Python sources: %w", err)
	}
	return out, nil
})

func tag(sources []byte) string {
	sum := sha256.Sum256(sources)
	return hex.EncodeToString(sum[:12])
}

// KernelMissing is the class of the exception that [KernelBegin] raises in a kernel
// that was not prepared, or by another version. Nothing was done then.
const KernelMissing = "CoppiceMissing"

// KernelBegin is the code that makes a kernel the one of a session. With full it
// prepares the kernel first; without, its script has done that, or it raises
// [KernelMissing]. The code leaves no name behind.
func KernelBegin(s KernelSession, full bool) (string, error) {
	sources, err := kernelSources()
	if err != nil {
		return "", err
	}
	keep := any(nil)
	if s.Keep != nil {
		keep = s.Keep
	}
	args, err := json.Marshal([]any{s.Cwd, s.Env, s.Remote, keep, [3]string{s.URL, s.Token, s.Session}, s.Helpers, s.Files})
	if err != nil {
		return "", fmt.Errorf("encode what a kernel needs to know: %w", err)
	}
	prepare, text := `        raise type("`+KernelMissing+`", (Exception,), {})(wanted)
`, ""
	if full {
		prepare, text = `        sources = json.loads(text)
        kernel = type(sys)("`+startModule+`")
        code = functools.lru_cache(None)(lambda name: compile(sources[name][1], sources[name][0], "exec", 0, True))
        exec(code("`+startModule+`"), kernel.__dict__)
        kernel.start(wanted, code)
        sys.modules["`+startModule+`"] = kernel
`, string(sources)
	}
	return fmt.Sprintf(`def __coppice_begin(wanted, text, args):
    import functools, json, sys
    kernel = sys.modules.get(%q)
    if getattr(kernel, "tag", None) != wanted:
%s    kernel.begin(*json.loads(args))
try:
    __coppice_begin(%s, %s, %s)
finally:
    del __coppice_begin
`, startModule, prepare, pylit.String(tag(sources)), pylit.String(text), pylit.String(string(args))), nil
}

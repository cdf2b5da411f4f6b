package envd

import (
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/coppice-run/coppice/workspace"
)

// Python says where the interpreter of a sandbox's sessions is, so that its processes find the
// same one. The zero value: it is not known, and they have what the machine has.
type Python struct {
	// Folder has the interpreter and the programs that are installed with it, such as pip.
	Folder string
	// Venv is its virtual environment. "": it is in none.
	Venv string
	// Path is the PATH that the host has for processes.
	Path string
}

// What clients start for a command and for a terminal is a login shell. Such a shell reads
// /etc/profile, which on many systems sets PATH anew, so that a PATH in its environment is lost.
const (
	bash = "/bin/bash"

	// pathVariable has what the shell puts into PATH when it has read that; the command does not
	// see it.
	pathVariable = "COPPICE_PATH"
	// setFirst and setAll do so. They stand on the first line of the command, so that its
	// lines keep their numbers in what the shell says about them.
	setFirst = "export PATH=$COPPICE_PATH:$PATH; unset COPPICE_PATH; "
	setAll   = "export PATH=$COPPICE_PATH; unset COPPICE_PATH; "

	// A terminal has no command. Its shell runs this before its first prompt, and leaves in place
	// what a profile has put around it.
	promptVariable = "COPPICE_PROMPT"
	prompts        = "PROMPT_COMMAND"
	forget         = `PROMPT_COMMAND=${PROMPT_COMMAND/"$COPPICE_PROMPT"/:}; [ "$PROMPT_COMMAND" != : ] || PROMPT_COMMAND=; unset COPPICE_PROMPT`
)

// lead has a process find the interpreter first, by its PATH. One that the client has set, for
// the process or for the sandbox, is kept, also by a login shell.
func (p Python) lead(o *workspace.ProcessOptions, sandbox map[string]string) {
	if p.Folder == "" {
		return
	}
	path, own := o.Env["PATH"]
	if !own {
		path, own = sandbox["PATH"]
	}
	set := setAll
	if !own {
		path, set = p.Folder, setFirst
		_, named := sandbox["VIRTUAL_ENV"]
		if _, asked := o.Env["VIRTUAL_ENV"]; !named && !asked && p.Venv != "" {
			o.Env["VIRTUAL_ENV"] = p.Venv // uv goes by it, as in the sessions
		}
	}
	switch {
	case isCommand(o.Args):
		o.Env[pathVariable] = path
		o.Args[len(o.Args)-1] = set + o.Args[len(o.Args)-1]
	case o.Terminal != nil && isTerminal(o.Args):
		once := set + forget
		o.Env[pathVariable], o.Env[promptVariable] = path, once
		for _, theirs := range []map[string]string{o.Env, sandbox} {
			if text := theirs[prompts]; text != "" {
				once += "\n" + text
				break
			}
		}
		o.Env[prompts] = once
	case !own:
		o.Env["PATH"] = p.Folder + string(os.PathListSeparator) + p.Path
	}
}

// isCommand reports whether a process is the shell that clients start for a command.
func isCommand(args []string) bool {
	return len(args) == 4 && slices.Equal(args[:3], []string{bash, "-l", "-c"})
}

// isTerminal reports whether a process is the shell that clients start for a terminal.
func isTerminal(args []string) bool {
	return args[0] == bash && slices.Contains(args, "-l") && !slices.ContainsFunc(args[1:], func(a string) bool { return a != "-l" && a != "-i" })
}

// Asked returns the program, the arguments and the variables of a process as its client has asked
// for them, without what lead has added for the shell.
func Asked(p *workspace.Process) (args []string, env map[string]string) { return asked(p.Options()) }

func asked(o workspace.ProcessOptions) (args []string, env map[string]string) {
	args, env = o.Args, o.Env
	if _, led := env[pathVariable]; !led {
		return args, env
	}
	args, env = slices.Clone(args), maps.Clone(env)
	if isCommand(args) {
		rest, first := strings.CutPrefix(args[3], setFirst)
		if !first {
			rest = strings.TrimPrefix(rest, setAll)
		}
		args[3] = rest
	}
	env[prompts] = strings.TrimPrefix(strings.TrimPrefix(env[prompts], env[promptVariable]), "\n")
	if env[prompts] == "" {
		delete(env, prompts)
	}
	delete(env, pathVariable)
	delete(env, promptVariable)
	return args, env
}

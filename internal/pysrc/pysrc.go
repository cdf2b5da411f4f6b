package pysrc

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
)

//go:embed bootstrap.py
var bootstrap string

//go:embed coppice_runner/*.py coppice_prelude/*.py
var files embed.FS

// The Python packages.
const (
	name        = "coppice_runner"
	preludeName = "coppice_prelude"
)

// modules are the sources of both packages by module name, with the file names
// that tracebacks would show.
var modules = sync.OnceValues(func() (map[string][2]string, error) {
	found := map[string][2]string{}
	return found, errors.Join(load(name, "<coppice>/", found), load(preludeName, "<coppice>/prelude/", found))
})

// load adds the modules of one package.
func load(pkg, prefix string, found map[string][2]string) error {
	entries, err := files.ReadDir(pkg)
	if err != nil {
		return fmt.Errorf("list the embedded Python files: %w", err)
	}
	for _, e := range entries {
		src, err := files.ReadFile(path.Join(pkg, e.Name()))
		if err != nil {
			return fmt.Errorf("read an embedded Python file: %w", err)
		}
		module := pkg
		if base := strings.TrimSuffix(e.Name(), ".py"); base != "__init__" {
			module += "." + base
		}
		found[module] = [2]string{prefix + e.Name(), string(src)}
	}
	return nil
}

//go:embed coppice_runner/locate.py
var locate string

// Locate returns the source of the module that finds out where in the user's
// code an exception came from. It needs nothing else of the package, so that an
// interpreter of another kind can use it.
func Locate() string { return locate }

// digest tells the sources of both packages from those of any other version.
var digest = sync.OnceValue(func() string {
	m, _ := modules()
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(m)) {
		for _, part := range []string{name, m[name][0], m[name][1]} {
			_, _ = fmt.Fprintf(h, "%d:%s", len(part), part)
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
})

// Role is what an interpreter becomes.
type Role string

// The roles. They are what a list of processes shows.
const (
	Server  Role = "coppice-server"
	Session Role = "coppice-session"
)

// Ahead is what a fork server does once, so that its sessions find it done.
type Ahead struct {
	// Preload names modules to import.
	Preload []string `json:"preload,omitempty"`
	// Prelude is source that runs in the namespace of every session. A session
	// that is asked for the same prelude does not run it again.
	Prelude string `json:"prelude,omitempty"`
	// Scopes are the bits of Landlock by which a session is kept from the processes and
	// the abstract sockets of its siblings. 0: it is not. They take no_new_privs.
	Scopes uint64 `json:"scopes,omitempty"`
	// Code is the folder in which the compiled code of the package is kept from one start
	// to the next, and made by the first of them, for its user alone. "": it is compiled
	// at each start.
	Code string `json:"-"`
}

// firstLine is all that stands in the arguments: the rest comes over the socket.
const firstLine = "import socket, sys; sock = socket.socket(fileno=int(sys.argv[4])); exec(sock.recv(int(sys.argv[2]), socket.MSG_WAITALL))"

// moved is what a program begins with whose descriptors come as its standard ones: 0 and 1
// are put where they belong, and what it prints goes to 2.
const moved = "import os; os.dup2(0, 3); os.dup2(1, 4); os.dup2(2, 1); os.dup2(os.open(os.devnull, os.O_RDONLY), 0); "

// Standard makes the arguments of [Program] for one other descriptor those of a program
// that gets the two as its stdin and its stdout, since it can be given no others.
func Standard(args []string) []string {
	args = slices.Clone(args)
	args[1] = moved + args[1]
	return args
}

// Program returns how to make an interpreter a fork server or a session: the
// arguments that it is started with, and what is to be written to its socket
// first. Its descriptors are numbered from 3: the socket, and others more.
// ahead is what a fork server does once for its sessions.
func Program(role Role, others int, ahead Ahead) (args []string, load []byte, err error) {
	m, err := modules()
	if err != nil {
		return nil, nil, err
	}
	code := ""
	if ahead.Code != "" {
		code = filepath.Join(ahead.Code, "runner-"+digest())
	}
	line, err := json.Marshal(struct {
		Modules map[string][2]string `json:"modules"`
		Code    string               `json:"code,omitempty"`
		Ahead
	}{m, code, ahead})
	if err != nil {
		return nil, nil, fmt.Errorf("write the Python sources: %w", err)
	}
	args = []string{"-c", firstLine, string(role), strconv.Itoa(len(bootstrap)), strconv.Itoa(len(line))}
	for n := range others + 1 {
		args = append(args, strconv.Itoa(3+n))
	}
	return args, append([]byte(bootstrap), line...), nil
}

package pyenv

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/coppice-run/coppice/internal/file"
)

// remembered is what an interpreter said of itself, in a file of its own below
// Options.Memory. The name of the file says what would make the answer another one: see
// fingerprint.
type remembered struct {
	Python     string `json:"python"` // for who reads the file
	Version    [3]int `json:"version"`
	Executable string `json:"executable"`
}

// maxRemembered bounds such a file, in bytes.
const maxRemembered = 64 << 10

// MemoryDir is the directory for Options.Memory below the directory of the brand.
func MemoryDir(home string) string { return filepath.Join(home, "agent", "starts") }

// recall returns what an interpreter has said of itself to an earlier process, and where
// such an answer is kept; "" where none can be.
func (r *resolver) recall(ctx context.Context, python string, env environ) (p probed, path string, ok bool) {
	name := fingerprint(python, env)
	if r.memory == "" || name == "" {
		return probed{}, "", false
	}
	path = filepath.Join(r.memory, "python-"+name)
	if r.fresh {
		return probed{}, path, false
	}
	data, err := file.Read(ctx, path, maxRemembered)
	var m remembered
	if err != nil || json.Unmarshal(data, &m) != nil || m.Executable == "" || m.Python != python {
		return probed{}, path, false
	}
	return probed{major: m.Version[0], minor: m.Version[1], micro: m.Version[2], executable: m.Executable}, path, true
}

// remember keeps an answer for the processes that come. Where that cannot be done, they
// ask again.
func remember(path, python string, p probed) {
	if path == "" {
		return
	}
	data, err := json.Marshal(remembered{Python: python, Version: [3]int{p.major, p.minor, p.micro}, Executable: p.executable})
	if err != nil || os.MkdirAll(filepath.Dir(path), 0o700) != nil {
		return
	}
	_ = file.Write(path, append(data, '\n'), file.WriteOptions{})
}

// fingerprint names all that an answer of an interpreter depends on: its file and the
// links that lead there, the virtual environment that it stands in, and the variables
// that Python and the loader of programs read. Of a file that is its name, size, mode and
// times, and on Unix its number and the time of its last change, which no program can set:
// who puts another interpreter there with the old one's times is noticed, too. "" where
// that does not tell: a script
// decides anew each time which interpreter it runs.
func fingerprint(python string, env environ) string {
	h := sha256.New()
	told := true
	add := func(s string) { _, _ = io.WriteString(h, strconv.Itoa(len(s))+":"+s) }
	stat := func(follow bool, path string) {
		look := os.Lstat
		if follow {
			look = os.Stat
		}
		info, err := look(path)
		if err != nil {
			told = false
			return
		}
		add(fmt.Sprint(path, info.Size(), info.ModTime().UnixNano(), info.Mode(), inode(path, follow)))
	}
	real, err := filepath.EvalSymlinks(python)
	if err != nil || isScript(real) {
		return ""
	}
	add(probeScript)
	stat(false, python)
	stat(true, real)
	for _, path := range []string{python, real} {
		for _, dir := range []string{filepath.Dir(path), filepath.Dir(filepath.Dir(path))} {
			data, err := os.ReadFile(filepath.Join(dir, "pyvenv.cfg"))
			add(string(data))
			told = told && (err == nil || os.IsNotExist(err))
		}
	}
	for _, v := range env {
		for _, prefix := range []string{"PYTHON", "LD_", "DYLD_", "__PYVENV"} {
			if strings.HasPrefix(v, prefix) {
				add(v)
			}
		}
	}
	if !told {
		return ""
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// isScript says whether a file is one that another program interprets, or cannot be read.
func isScript(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return true
	}
	defer func() { _ = f.Close() }()
	var first [2]byte
	_, err = io.ReadFull(f, first[:])
	return err != nil || string(first[:]) == "#!"
}

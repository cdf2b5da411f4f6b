//go:build unix

package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/coppice-run/coppice/test/documents"
)

// place is where the stories happen, and with what.
type place struct{ coppice, python, typescript, keep string }

// settle makes all paths whole.
func (p *place) settle() error {
	python, err := exec.LookPath(p.python)
	if err != nil {
		return fmt.Errorf("find the Python of the blocks: %w", err)
	}
	p.python = python
	for _, path := range []*string{&p.coppice, &p.python, &p.typescript, &p.keep} {
		if *path == "" {
			continue
		}
		whole, err := filepath.Abs(*path)
		if err != nil {
			return fmt.Errorf("find %s: %w", *path, err)
		}
		*path = whole
	}
	if _, err := os.Stat(p.coppice); err != nil {
		return fmt.Errorf("find the command: %w", err)
	}
	return nil
}

var notOfFiles = regexp.MustCompile(`[^A-Za-z0-9]+`)

// tell goes through a story in one shell, and says of each step how it ended.
func (p *place) tell(ctx context.Context, story documents.Story, out io.Writer) (sum count, err error) {
	dir := filepath.Join(p.keep, notOfFiles.ReplaceAllString(story.Doc, "-"))
	script, err := p.prepare(dir, story)
	if err != nil {
		return count{}, err
	}
	client, err := filepath.Abs("clients/python/src")
	if err != nil {
		return count{}, fmt.Errorf("find the Python client: %w", err)
	}
	read, write, err := os.Pipe()
	if err != nil {
		return count{}, fmt.Errorf("make a pipe: %w", err)
	}
	defer func() { _ = read.Close() }()
	cmd := exec.CommandContext(ctx, "bash", script) //nolint:gosec // it was written by prepare
	cmd.Dir = filepath.Join(dir, "work")
	cmd.Env = []string{
		"HOME=" + filepath.Join(dir, "home"), "PATH=" + filepath.Join(dir, "bin") + ":" + os.Getenv("PATH"),
		"LANG=C.UTF-8", "TERM=dumb", "TMPDIR=" + os.TempDir(), "CLIENT=" + client,
	}
	cmd.Stdout, cmd.Stderr = write, write
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = time.Minute
	err = cmd.Start()
	_ = write.Close() // the shell has it
	if err != nil {
		return count{}, fmt.Errorf("start a shell: %w", err)
	}
	heard := make(chan []ending, 1)
	go func() { heard <- listen(read, len(story.Steps)) }() // ends with the last who has the pipe
	waited := cmd.Wait()
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)   // what a story has left
	_ = read.SetReadDeadline(time.Now().Add(time.Minute)) // somebody may have the pipe still
	ends := <-heard
	sum, err = report(out, story, ends, p.typescript == "")
	if err == nil && ctx.Err() == nil && waited != nil && sum.wrong == 0 {
		err = fmt.Errorf("the shell: %w", waited)
	}
	return sum, err
}

// prepare makes the folders of a story, its programs and its script.
func (p *place) prepare(dir string, story documents.Story) (script string, err error) {
	if err := os.RemoveAll(dir); err != nil {
		return "", fmt.Errorf("clear %s: %w", dir, err)
	}
	for _, name := range []string{"home", "work", "bin", "node_modules/@coppice"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
			return "", fmt.Errorf("make a folder: %w", err)
		}
	}
	if err := os.Symlink(p.coppice, filepath.Join(dir, "bin", "coppice")); err != nil {
		return "", fmt.Errorf("name the command: %w", err)
	}
	if p.typescript != "" {
		if err := os.Symlink(p.typescript, filepath.Join(dir, "node_modules", "@coppice", "client")); err != nil {
			return "", fmt.Errorf("name the client: %w", err)
		}
	}
	var b strings.Builder
	b.WriteString("trap 'kill $(jobs -p) 2>/dev/null; wait' EXIT\nexec </dev/null\n")
	for i, s := range story.Steps {
		command := s.Run
		program := filepath.Join(dir, fmt.Sprint("step-", i))
		switch {
		case s.Run == "" || s.Language == "ts" && p.typescript == "":
			continue
		case s.Language == "python":
			program += ".py"
			command = fmt.Sprintf("PYTHONPATH=$CLIENT %s -B %s", quoted(p.python), quoted(program))
		case s.Language == "ts":
			program += ".mts"
			command = fmt.Sprintf("node %s --module nodenext --target es2022 --strict --types node --typeRoots %s %s && node %s",
				quoted(filepath.Join(p.typescript, "node_modules/typescript/bin/tsc")), quoted(filepath.Join(p.typescript, "node_modules/@types")),
				quoted(program), quoted(strings.TrimSuffix(program, ".mts")+".mjs"))
		case serves(s) && !(i+1 < len(story.Steps) && strings.Contains(story.Steps[i+1].Run, "health --wait")):
			// A reader goes on when it has said where it is. A script has to wait for that itself.
			command += "\nuntil coppice health >/dev/null 2>&1 || ! kill -0 $! 2>/dev/null; do sleep 0.2; done\ncoppice health >/dev/null"
		}
		if s.Language != "sh" {
			if err := os.WriteFile(program, []byte(s.Run), 0o600); err != nil {
				return "", fmt.Errorf("write a program: %w", err)
			}
		}
		fmt.Fprintf(&b, "%s\nprintf '\\n\\036%d %%d\\n' $?\n", command, i)
	}
	script = filepath.Join(dir, "story.sh")
	if err := os.WriteFile(script, []byte(b.String()), 0o600); err != nil {
		return "", fmt.Errorf("write the story: %w", err)
	}
	return script, nil
}

// background is the end of a command that goes on beside the shell, and its comment.
var background = regexp.MustCompile(`&\s*(#.*)?$`)

// serves says that a step starts a server beside the shell.
func serves(s documents.Step) bool {
	return s.Language == "sh" && strings.HasPrefix(s.Run, "coppice serve") && background.MatchString(s.Run)
}

// quoted is a word of the shell.
func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// ending is how a step has ended.
type ending struct {
	came   bool
	status int
	said   string
	took   time.Duration
}

// listen reads what a shell says, up to its end. What is said belongs to the step that
// ends next; what comes after the last is that of the last.
func listen(from io.Reader, steps int) []ending {
	ends := make([]ending, steps)
	begin, last := time.Now(), 0
	var said strings.Builder
	lines := bufio.NewReader(from)
	for {
		line, err := lines.ReadString('\n')
		if id, status, ok := marker(line); ok && id < steps {
			ends[id] = ending{came: true, status: status, said: said.String(), took: time.Since(begin)}
			begin, last = time.Now(), id
			said.Reset()
		} else {
			said.WriteString(line)
		}
		if err != nil {
			break // the last has closed it
		}
	}
	if last < steps {
		ends[last].said += said.String()
	}
	return ends
}

// marker reads what the script writes after each step.
func marker(line string) (id, status int, ok bool) {
	words, found := strings.CutPrefix(strings.TrimSpace(line), "\036")
	first, second, both := strings.Cut(words, " ")
	id, err := strconv.Atoi(first)
	status, err2 := strconv.Atoi(second)
	return id, status, found && both && err == nil && err2 == nil
}

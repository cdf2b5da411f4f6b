package workspaceapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/cmd/internal/httpserver"
	"github.com/coppice-run/coppice/internal/file"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/workspace"
	"github.com/coppice-run/coppice/workspace/procs"
)

// maxInput bounds what one request may write to a process, in bytes.
const maxInput = 1 << 20

// size is that of a terminal; numbers are as JSON has them.
type size struct {
	Columns float64 `json:"columns"`
	Rows    float64 `json:"rows"`
}

// terminal reads the size.
func (s size) terminal() (procs.Size, error) {
	const most = 1<<16 - 1
	columns, err := whole("columns", s.Columns, most)
	if err != nil {
		return procs.Size{}, err
	}
	rows, err := whole("rows", s.Rows, most)
	return procs.Size{Columns: uint16(columns), Rows: uint16(rows)}, err //nolint:gosec // they are that small
}

// program is the body of a request for a process.
type program struct {
	Args     []string          `json:"args"`
	Env      map[string]string `json:"env,omitempty"`
	Cwd      string            `json:"cwd,omitempty"`
	Input    bool              `json:"input,omitempty"`
	Terminal *size             `json:"terminal,omitempty"`
	Keep     float64           `json:"keep_bytes,omitempty"`
	Timeout  float64           `json:"timeout_seconds,omitempty"`
	Labels   map[string]string `json:"labels,omitempty"`
}

// options reads the request.
func (p program) options() (o workspace.ProcessOptions, err error) {
	o = workspace.ProcessOptions{Args: p.Args, Env: p.Env, Cwd: p.Cwd, Input: p.Input, Labels: p.Labels}
	if len(p.Args) == 0 || p.Args[0] == "" {
		return o, bad(`send {"args": ["ls", "-l"]}`, "args names no program")
	}
	if o.Keep, err = whole("keep_bytes", p.Keep, maxWhole); err != nil {
		return o, err
	}
	if o.Timeout, err = seconds("timeout_seconds", p.Timeout); err != nil {
		return o, err
	}
	if p.Terminal != nil {
		at, err := p.Terminal.terminal()
		if err != nil {
			return o, err
		}
		o.Terminal = &at
	}
	return o, nil
}

// tellProcess tells what is known of a process, but for its environment.
func tellProcess(p *workspace.Process) client.Process {
	o := p.Options()
	told := client.Process{
		ID: p.ID(), PID: p.PID(), Args: o.Args, Cwd: o.Cwd, Terminal: p.Terminal(), Input: o.Input || p.Terminal(),
		Labels: o.Labels, Started: p.Started(), State: client.ProcessRunning,
	}
	if exit, ended := p.Exit(); ended {
		told.State, told.Exit = client.ProcessEnded, &client.ProcessExit{Code: exit.Code, Signal: exit.Signal, Reason: exit.Reason, Incomplete: exit.Incomplete}
	}
	return told
}

func (h *handler) processes(w http.ResponseWriter, r *http.Request, at place) error {
	list := []client.Process{}
	for _, p := range at.w.Processes() {
		list = append(list, tellProcess(p))
	}
	httpserver.Answer(w, r, http.StatusOK, map[string]any{"processes": list})
	return nil
}

func (h *handler) start(w http.ResponseWriter, r *http.Request, at place) error {
	var in program
	if !body(w, r, &in) {
		return nil
	}
	o, err := in.options()
	if err != nil {
		return err
	}
	if dir := (messages.SessionKey{Cwd: at.w.Folder()}).In(o.Cwd).Cwd; h.o.Inside && !file.Below(at.w.Folder(), dir) {
		return unfit("name one there, relative to it, or leave it out", "the working directory %.200q is no folder of the workspace", o.Cwd)
	}
	p, err := at.w.Start(r.Context(), o)
	if err != nil {
		return err
	}
	w.Header().Set("Location", "/api/workspaces/"+at.w.Name()+"/processes/"+p.ID())
	httpserver.JSON(w, http.StatusCreated, tellProcess(p))
	return nil
}

// showProcess describes a process, when it has ended if the request waits for that.
func (h *handler) showProcess(w http.ResponseWriter, r *http.Request, at place) error {
	wait, err := waits(r, "wait", 0)
	if err != nil {
		return err
	}
	if wait > 0 {
		ctx, cancel := context.WithTimeout(r.Context(), wait)
		defer cancel()
		_, _ = at.proc.Wait(ctx) // what it is then is told
	}
	httpserver.JSON(w, http.StatusOK, tellProcess(at.proc))
	return nil
}

// endProcess ends a process, and returns when it has ended. One that has is no error.
func (h *handler) endProcess(w http.ResponseWriter, r *http.Request, at place) error {
	grace, err := waits(r, "grace", 2)
	if err != nil {
		return err
	}
	if grace == 0 {
		grace = -1
	}
	if _, ended := at.proc.Exit(); !ended {
		if err := at.proc.Stop(r.Context(), "it was asked to end", grace); err != nil {
			return err
		}
	}
	httpserver.JSON(w, http.StatusOK, tellProcess(at.proc))
	return nil
}

// input writes the body of a request to the input of a process, and says how much of it was taken
// while the request waited.
func (h *handler) input(w http.ResponseWriter, r *http.Request, at place) error {
	wait, err := waits(r, "wait", 30)
	if err != nil {
		return err
	}
	var data []byte
	large := r.ContentLength > maxInput // then nothing of it needs to be sent
	if !large {
		data, err = io.ReadAll(http.MaxBytesReader(w, r.Body, maxInput))
		_, large = errors.AsType[*http.MaxBytesError](err)
	}
	if large {
		return &refusal{http.StatusRequestEntityTooLarge, "too_large", "the body is larger than 1 MiB", "send it in several requests"}
	}
	if err != nil {
		return err
	}
	taken := 0
	if len(data) > 0 {
		ctx, cancel := context.WithTimeout(r.Context(), wait)
		defer cancel()
		taken, err = at.proc.Write(ctx, data)
		if err != nil && (ctx.Err() == nil || r.Context().Err() != nil) {
			return err
		}
	}
	httpserver.JSON(w, http.StatusOK, map[string]int{"taken": taken})
	return nil
}

// closeTime bounds how long a terminal is waited for that is to take its end.
const closeTime = 30 * time.Second

func (h *handler) closeInput(w http.ResponseWriter, r *http.Request, at place) error {
	ctx, cancel := context.WithTimeout(r.Context(), closeTime)
	defer cancel()
	if err := at.proc.CloseInput(ctx); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// signals are those that the document has, which may have SIG before them.
var signals = []string{"INT", "TERM", "KILL", "HUP", "QUIT", "USR1", "USR2", "STOP", "CONT", "WINCH"}

func (h *handler) signal(w http.ResponseWriter, r *http.Request, at place) error {
	var in struct {
		Signal string `json:"signal"`
	}
	if !body(w, r, &in) {
		return nil
	}
	err := fmt.Errorf("%w: %.40q", procs.ErrSignal, in.Signal)
	if name := strings.TrimPrefix(in.Signal, "SIG"); slices.Contains(signals, name) {
		err = at.proc.Signal(name)
	}
	if err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (h *handler) resize(w http.ResponseWriter, r *http.Request, at place) error {
	var in size
	if !body(w, r, &in) {
		return nil
	}
	to, err := in.terminal()
	if err == nil {
		err = at.proc.Resize(to)
	}
	if err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// events streams what a process prints, and its end.
func (h *handler) events(w http.ResponseWriter, r *http.Request, at place) error {
	after, _, err := cursor(r)
	if err != nil {
		return err
	}
	_, ended := at.proc.Exit()
	events, err := at.proc.Read(after)
	if err != nil {
		return err
	}
	defer events.Close()
	s := h.openStream(w)
	defer s.end()
	begun := false
	for {
		var entries []procs.Entry
		if begun || ended { // else what there is to come may take its time, and the reader is to know that it is heard
			if entries, err = events.Next(r.Context()); err != nil {
				break
			}
		}
		if !begun {
			begun = true
			if s.begin() != nil {
				return nil // who has gone cannot be told
			}
		}
		for _, e := range entries {
			if s.event(e.Seq, e.JSON) != nil {
				return nil // as above
			}
		}
	}
	switch {
	case begun:
		return nil // the last event says how it ended, or the stream breaks
	case errors.Is(err, io.EOF):
		w.WriteHeader(http.StatusNoContent)
		return nil
	default:
		return err
	}
}

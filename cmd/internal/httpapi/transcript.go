package httpapi

import (
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/internal/recording"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/notebook"
)

// What a notebook of a session holds at most: the output of one cell, and how much is
// read of all executions together; both in bytes.
const (
	cellOutput       = 4 << 20
	transcriptOutput = 64 << 20
)

// cells are those of a call; none for the run of a notebook.
func (x *execution) cells() []messages.Cell {
	asked, _ := x.request()
	return asked.Cells
}

// request is how a call was asked for, if that is known.
func (x *execution) request() (asked client.Execute, known bool) {
	if x.info.Kind != client.KindCall || json.Unmarshal([]byte(x.asked), &asked) != nil {
		return client.Execute{}, false
	}
	return asked, true
}

// codeOf is the code of cells, with an empty line between two.
func codeOf(cells []messages.Cell) string {
	list := make([]string, len(cells))
	for i, c := range cells {
		list[i] = c.Code
	}
	return strings.Join(list, "\n\n")
}

// transcript answers with what a session executed, as far as the server has it, as a
// notebook.
func (a *API) transcript(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	key := a.key(r.PathValue("session"), query.Get("cwd"))
	if within, kernel := query.Get("workspace"), query.Get("kernel"); within != "" || kernel != "" {
		_, of, err := a.at(r.PathValue("session"), query.Get("cwd"), within, kernel)
		if err != nil {
			a.problem(w, fmt.Errorf("%w: %w", errNotFound, err))
			return
		}
		key = of
	}
	a.mu.Lock()
	a.forgetLocked()
	order := slices.Clone(a.order)
	a.mu.Unlock()
	order = slices.DeleteFunc(order, func(x *execution) bool {
		return x.info.Session != key.Session || x.info.Cwd != key.Cwd || x.info.Workspace != key.Workspace || x.info.Kernel != key.Kernel
	})
	if len(order) == 0 {
		a.problem(w, fmt.Errorf("the server has nothing that the session %s executed: %w; the last %d executions that ended are kept, for %v at most", key, errNotFound, a.o.Keep, a.o.KeepFor))
		return
	}
	book, err := write(order)
	if err != nil {
		a.problem(w, fmt.Errorf("write the notebook of the session %s: %w", key, err))
		return
	}
	h := w.Header()
	h.Set("Content-Type", "application/x-ipynb+json")
	h.Set("Content-Security-Policy", "sandbox; default-src 'none'") // code wrote it
	h.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": fileName(key.Session) + ".ipynb"}))
	_, _ = book.WriteTo(w) // who has gone cannot be told
}

// fileName is a name of a session as one of a file, on every system.
func fileName(session string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || strings.ContainsRune(`<>:"/\|?*`, r) {
			return '_'
		}
		return r
	}, strings.TrimLeft(session, "."))
}

// write makes the notebook.
func write(order []*execution) (*notebook.Document, error) {
	book := notebook.New()
	for _, set := range []struct {
		value any
		path  []string
	}{
		{map[string]string{"display_name": "Python 3", "language": "python", "name": "python3"}, []string{"kernelspec"}},
		{"python", []string{"language_info", "name"}},
	} {
		if err := book.SetNotebookMetadata(set.value, set.path...); err != nil {
			return nil, err
		}
	}
	t := script{book: book, outputs: notebook.NewRecorder(book), room: transcriptOutput}
	for _, x := range order {
		if err := t.add(x); err != nil {
			return nil, err
		}
	}
	return book, nil
}

// script is a notebook that is being written.
type script struct {
	book    *notebook.Document
	outputs *notebook.Recorder
	prompt  int
	room    int64 // bytes of events that are still read
}

// add appends the cells of an execution with what they showed.
func (t *script) add(x *execution) error {
	cells, info := x.cells(), x.describe(false)
	if info.Kind == client.KindNotebook {
		_, err := t.book.Append(notebook.NewCell{Type: notebook.Markdown, Source: "Ran the notebook `" + strings.ReplaceAll(info.Title, "`", "'") + "`."})
		return err
	}
	meta, err := json.Marshal(map[string]any{"coppice": map[string]string{"execution": info.ID}})
	if err != nil {
		return fmt.Errorf("describe the execution %s: %w", info.ID, err)
	}
	first := len(t.book.Cells())
	for _, c := range cells {
		if _, err := t.book.Append(notebook.NewCell{Source: c.Code, Metadata: meta}); err != nil {
			return err
		}
	}
	var cell *recording.Cell
	at := -1
	finish := func(remarks ...string) {
		if cell != nil {
			cell.Finish(0, remarks...)
		}
		cell = nil
	}
	for after := uint64(0); ; {
		entries, _, err := x.events().Read(after, batch)
		if err != nil || len(entries) == 0 {
			finish() // what was forgotten meanwhile has no more output
			return nil
		}
		for _, data := range entries {
			after++
			if t.room -= int64(len(data)); t.room < 0 {
				finish("the rest of the output is left out: the notebook would be too large")
				return nil
			}
			e, err := messages.ParseEvent(data)
			if err != nil {
				return fmt.Errorf("read event %d of the execution %s: %w", after, info.ID, err)
			}
			if n := e.Pos().Cell; shows(e) && n >= 0 && n < len(cells) && n != at {
				finish()
				at = n
				t.prompt++
				if cell, err = recording.Begin(t.outputs, notebook.At(first+n), t.prompt, cellOutput); err != nil {
					return err
				}
			}
			if _, status := e.(messages.Status); cell != nil && !status { // it would say that the cell runs now
				cell.Record(e)
			}
		}
	}
}

// shows reports whether an event is of a cell that ran.
func shows(e messages.Event) bool {
	switch e := e.(type) {
	case messages.Status:
		return e.Status != messages.CellPending
	case messages.Notice, messages.Final:
		return false
	default:
		return true
	}
}

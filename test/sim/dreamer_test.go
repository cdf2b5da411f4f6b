package sim_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/store"
)

// shelf is a store in memory that can be broken. Its lock guards all of it, and the
// interpreters.
type shelf struct {
	mu      sync.Mutex
	records map[string]*shelved
	broken  bool // nothing can be written or read
	// awake are the interpreters that live, by the ID of their session's key; peak is how
	// many there were at once.
	awake map[string]*dreamer
	peak  int
	tried int // how many images were read to see whether they can be
}

type shelved struct {
	header store.Header
	image  []byte
	open   bool
}

func (s *shelf) Put(_ context.Context, h store.Header, image io.ReaderAt) error {
	data := make([]byte, h.Size())
	if _, err := image.ReadAt(data, 0); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken {
		return errors.New("the disk is broken")
	}
	s.records[h.Name] = &shelved{header: h, image: data}
	return nil
}

func (s *shelf) Get(_ context.Context, name string, c store.Claim) (store.Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.records[name]
	switch {
	case r == nil:
		return nil, store.ErrNone
	case r.open:
		return nil, store.ErrBusy
	case s.broken:
		return nil, errors.New("the disk is broken")
	}
	if err := r.header.Admit(name, c); err != nil {
		return nil, err
	}
	r.open = true
	return &taken{s, r}, nil
}

func (s *shelf) List(context.Context) ([]store.Header, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []store.Header
	for _, name := range slices.Sorted(maps.Keys(s.records)) {
		list = append(list, s.records[name].header)
	}
	return list, nil
}

func (s *shelf) Delete(_ context.Context, name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.records, name)
	return nil
}

// taken is a record that is open.
type taken struct {
	s *shelf
	r *shelved
}

func (t *taken) Header() store.Header { return t.r.header }
func (t *taken) Image(_ context.Context, to io.Writer) error {
	_, err := to.Write(t.r.image)
	return err
}

func (t *taken) Close() error {
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	t.r.open = false
	return nil
}

// dreamers are interpreters that count their cells, and can be written down.
type dreamers struct{ s *shelf }

func (d dreamers) Name() string { return "dreamers" }
func (d dreamers) Start(_ context.Context, o kernel.StartOptions) (kernel.Interpreter, error) {
	<-time.After(100 * time.Millisecond)
	i := &dreamer{s: d.s, id: o.Key.ID(), done: make(chan struct{}), other: o.Once}
	d.s.mu.Lock()
	defer d.s.mu.Unlock()
	if i.other {
		d.s.tried++
		return i, nil
	}
	if d.s.awake[i.id] != nil {
		return nil, errors.New("the session has two interpreters")
	}
	d.s.awake[i.id] = i
	d.s.peak = max(d.s.peak, len(d.s.awake))
	return i, nil
}

// dreamer is one of them; the shelf's lock guards n, lossy and err.
type dreamer struct {
	s     *shelf
	id    string
	other bool // it reads what was written
	done  chan struct{}
	end   sync.Once

	n     int
	lossy bool
	err   error
}

func (i *dreamer) Info() kernel.Info                                               { return kernel.Info{PID: 1, Python: "3.14"} }
func (i *dreamer) Interrupt(context.Context) error                                 { return nil }
func (i *dreamer) AnswerInput(context.Context, string, messages.InputAnswer) error { return nil }
func (i *dreamer) Ping(context.Context) error                                      { return nil }
func (i *dreamer) RSS() int64                                                      { return 1 << 20 }
func (i *dreamer) Done() <-chan struct{}                                           { return i.done }
func (i *dreamer) Err() error                                                      { return i.err }

func (i *dreamer) Close(context.Context) error {
	<-time.After(50 * time.Millisecond)
	i.over(errClosed)
	return nil
}

func (i *dreamer) over(err error) {
	i.end.Do(func() {
		i.s.mu.Lock()
		defer i.s.mu.Unlock()
		i.err = err
		if !i.other {
			delete(i.s.awake, i.id)
		}
		close(i.done)
	})
}

func (i *dreamer) Execute(ctx context.Context, r kernel.CellRequest, emit func(context.Context, messages.Event) error) (kernel.CellReply, error) {
	<-time.After(10 * time.Millisecond)
	i.s.mu.Lock()
	i.n++
	n := i.n
	i.lossy = r.Code == "lossy"
	i.s.mu.Unlock()
	return kernel.CellReply{OK: true}, emit(ctx, messages.Stream{Text: strconv.Itoa(n)})
}

func (i *dreamer) Freeze(context.Context) (kernel.Frozen, error) {
	i.s.mu.Lock()
	defer i.s.mu.Unlock()
	return dream{i.n, i.lossy}, nil
}

func (i *dreamer) Thaw(_ context.Context, from *os.File, _ messages.RawJSON) (kernel.Thawed, error) {
	<-time.After(10 * time.Millisecond)
	data, err := io.ReadAll(io.NewSectionReader(from, 0, 64))
	if err == nil {
		i.s.mu.Lock()
		defer i.s.mu.Unlock()
		i.n, err = strconv.Atoi(string(data))
	}
	return kernel.Thawed{}, err
}

// dream is what a dreamer has in memory.
type dream struct {
	n     int
	lossy bool
}

func (d dream) Write(_ context.Context, to *os.File, how kernel.Writing) (messages.RawJSON, error) {
	<-time.After(10 * time.Millisecond)
	text := strconv.Itoa(d.n)
	about := struct {
		messages.Memory
		Sections []int64 `json:"sections"`
	}{messages.Memory{Kept: []string{"n"}}, []int64{int64(len(text))}}
	if d.lossy {
		about.Lost = []messages.LostName{{Name: "sock", Type: "socket", Reason: "a connection ends with its process"}}
	}
	if how.Whole && d.lossy {
		about.Sections = nil
		return json.Marshal(about)
	}
	if _, err := to.WriteAt([]byte(text), 0); err != nil {
		return nil, err
	}
	return json.Marshal(about)
}

func (d dream) Close(context.Context) error { return nil }

var (
	_ store.Store    = (*shelf)(nil)
	_ kernel.Freezer = (*dreamer)(nil)
	_ kernel.Backend = dreamers{}
)

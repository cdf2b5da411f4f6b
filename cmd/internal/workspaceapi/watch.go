package workspaceapi

import (
	"encoding/json"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/internal/sse"
	"github.com/coppice-run/coppice/workspace/files"
)

// streamWrite bounds how long a reader of a stream may take for one write.
const streamWrite = time.Minute

// stream writes server-sent events, and signs of life while there is none.
type stream struct {
	*sse.Writer
	every time.Duration
	stop  chan struct{}
	alive sync.WaitGroup
}

func (h *handler) openStream(w http.ResponseWriter) *stream {
	return &stream{Writer: sse.NewWriter(w, streamWrite), every: h.o.KeepAlive, stop: make(chan struct{})}
}

// begin answers, and gives signs of life from then on.
func (s *stream) begin() error {
	if err := s.Start(); err != nil {
		return err
	}
	s.alive.Go(func() { // ends with end, which joins it
		tick := time.NewTicker(s.every)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				if s.Comment("alive") != nil {
					return // the next event fails too
				}
			case <-s.stop:
				return
			}
		}
	})
	return nil
}

// end leaves the connection as it was.
func (s *stream) end() {
	close(s.stop)
	s.alive.Wait()
	s.End()
}

// event writes one, whose number is its id.
func (s *stream) event(n uint64, data []byte) error {
	return s.Event("", strconv.FormatUint(n, 10), data)
}

// maxCursor is the largest number of a change that a reader may name.
const maxCursor = maxWhole

// watch streams the changes of a directory: from now on. One that comes back is told
// first that some may be lost, since they are not kept.
func (h *handler) watch(w http.ResponseWriter, r *http.Request, at place) error {
	name, err := path(r, ".")
	if err != nil {
		return err
	}
	recursive, err := flag(r, "recursive")
	if err != nil {
		return err
	}
	seq, again, err := cursor(r)
	if err != nil {
		return err
	}
	if seq > maxCursor {
		return unfit("leave it out", "the cursor is ahead of what there can be")
	}
	s := h.openStream(w)
	defer s.end()
	begun := false
	tell := func(op client.ChangeOp, path, why string) error {
		seq++
		data, err := json.Marshal(client.FileChange{Seq: seq, Op: op, Path: path, Reason: why})
		if err != nil {
			return err
		}
		return s.event(seq, data)
	}
	var failed error
	err = at.files.Watch(r.Context(), name, recursive, func() {
		begun = true
		if failed = s.begin(); failed == nil && again {
			failed = tell(client.ChangeOp(files.ChangeLost), name, "")
		}
	}, func(c files.Change) error {
		if failed == nil {
			failed = tell(client.ChangeOp(c.Op), c.Path, "")
		}
		return failed
	})
	switch {
	case !begun:
		return err
	case failed != nil, r.Context().Err() != nil:
		return nil // the reader has gone, or the server goes
	}
	why := "the directory is not there any more"
	if ended := at.w.Err(); ended != nil {
		why = ended.Error()
	} else if err != nil {
		why = err.Error()
	}
	_ = tell(client.ChangeEnded, name, why) // who has gone cannot be told
	return nil
}

package repl

import (
	"context"
	"io"
	"iter"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/cmd/internal/render"
	"github.com/coppice-run/coppice/messages"
)

// Session is the session that the screen types into; *coppice.Session is one.
type Session interface {
	Key() messages.SessionKey
	Stream(ctx context.Context, r coppice.Request) iter.Seq2[messages.Event, error]
	SubmitInput(id, value string) (messages.InputStatus, error)
	Interrupt() error
	Complete(ctx context.Context, code string, cursor int) (coppice.Completion, error)
	Inspect(ctx context.Context, code string, cursor int) (string, error)
}

// Options make a screen.
type Options struct {
	// Session runs the cells; Backend is what the status line calls its kind.
	Session Session
	Backend string
	// Snapshot returns the tree that the pane shows.
	Snapshot func(context.Context) (messages.Node, error)
	// History is the file of what was run before. "": that of this screen is kept
	// while it is shown.
	History string
	// Colour allows colours.
	Colour bool
	// In and Out are the terminal, Env what is known of it.
	In  io.Reader
	Out io.Writer
	Env []string
	// Now is the clock. nil: time.Now.
	Now func() time.Time
}

func (o Options) now() time.Time {
	if o.Now != nil {
		return o.Now()
	}
	return time.Now()
}

// entry is one call and what it showed.
type entry struct {
	n        int
	code     string
	events   []messages.Event // bounded: what is older than keepBytes is let go
	bytes    int
	dropped  bool
	result   *messages.Result
	begun    time.Time
	took     time.Duration
	rendered []string // nil: to be drawn again
}

// keepBytes bounds what is kept of the output of one call for drawing it again.
const keepBytes = 4 << 20

// model is the screen.
type model struct {
	o    Options
	send func(tea.Msg)
	ctx  context.Context //nolint:containedctx // the life of the screen; its calls end with it

	width, height int
	editor        editor
	history       *history
	entries       []*entry
	running       *entry
	asking        *messages.InputRequest // what the running cell waits for
	expand, tree  bool
	node          messages.Node
	note          string   // one line about what just happened
	help          []string // what an inspection or a completion has to say
	leaving       bool     // Ctrl-C was pressed once
	scroll        int      // lines above the end of the transcript
	calls         group
}

// The messages of the loop.
type (
	eventMsg struct {
		of *entry
		e  messages.Event
	}
	answeredMsg struct {
		of       *entry
		id, text string
	}
	endMsg struct {
		of     *entry
		result messages.Result
		err    error
	}
	treeMsg     struct{ node messages.Node }
	completeMsg struct {
		code string
		at   int
		c    coppice.Completion
		err  error
	}
	inspectMsg struct {
		text string
		err  error
	}
	noteMsg struct{ text string }
	tickMsg struct{}
)

// add keeps one event.
func (x *entry) add(e messages.Event) {
	x.rendered = nil
	x.events = append(x.events, e)
	for x.bytes += e.Size(); x.bytes > keepBytes && len(x.events) > 1; {
		x.bytes -= x.events[0].Size()
		x.events = x.events[1:]
		x.dropped = true
	}
}

func (m *model) redraw() {
	for _, x := range m.entries {
		x.rendered = nil
	}
}

func (m *model) style() render.Style {
	return render.Style{Colour: m.o.Colour, Width: max(m.width, 20), Images: render.Blocks}
}

// group owns the goroutines of a screen.
type group struct{ running sync.WaitGroup }

func (g *group) run(f func()) { g.running.Go(f) }
func (g *group) wait()        { g.running.Wait() }

package cli

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/coppice-run/coppice/cmd/internal/cli/console"
	"github.com/coppice-run/coppice/cmd/internal/render"
	"github.com/coppice-run/coppice/messages"
)

// How often the tree is drawn again, how long a look at it may take, and how long
// a title stands before its scene.
const (
	stageBeat     = 900 * time.Millisecond
	stageEvery    = 100 * time.Millisecond
	stagePatience = 250 * time.Millisecond
)

// sinksNode is the part of the tree of which the demo only counts the children.
const sinksNode = "sinks"

// stage is what the viewer of the demo sees: text that scrolls, and below it,
// on a terminal, the supervision tree as it is now. What is said is written by
// the stage's own goroutine, so that whoever says something never waits for a
// terminal; close ends it.
type stage struct {
	out   *console.Output
	style render.Style
	look  func(context.Context) (messages.Node, error)
	short func(string) string // shortens names and paths

	mu      sync.Mutex
	pending strings.Builder // guarded by mu: said and not yet written

	wake   chan struct{}
	quit   chan struct{}
	joined chan struct{}
	once   sync.Once
	drawn  int // lines of the tree on the terminal; of paint's goroutine
}

func newStage(a *app, look func(context.Context) (messages.Node, error), short func(string) string) *stage {
	s := &stage{
		out: a.Out, style: a.Style(a.Out), look: look, short: short,
		wake: make(chan struct{}, 1), quit: make(chan struct{}), joined: make(chan struct{}),
	}
	go s.paint()
	return s
}

// say adds whole lines of text.
func (s *stage) say(text string) {
	if text == "" {
		return
	}
	s.mu.Lock()
	s.pending.WriteString(text)
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// title begins a scene. On a terminal it leaves time to read it, unless ctx
// ends.
func (s *stage) title(ctx context.Context, text string) {
	s.say("\n" + s.style.Title(text) + "\n")
	if !s.out.Terminal {
		return
	}
	select {
	case <-time.After(stageBeat):
	case <-ctx.Done():
	}
}

// tree writes the tree as it is now, where it is not drawn all the time.
func (s *stage) tree(ctx context.Context) {
	if s.out.Terminal {
		return
	}
	if lines := s.lines(ctx, render.Style{}); len(lines) > 0 {
		s.say(strings.Join(lines, "\n") + "\n")
	}
}

// close writes what is left and removes the tree.
func (s *stage) close() {
	s.once.Do(func() { close(s.quit) })
	<-s.joined
}

func (s *stage) paint() {
	defer close(s.joined)
	tick := time.NewTicker(stageEvery)
	defer tick.Stop()
	for {
		select {
		case <-s.quit:
			s.frame(nil)
			return
		case <-s.wake:
		case <-tick.C:
			if !s.out.Terminal {
				continue
			}
		}
		var tree []string
		if s.out.Terminal {
			tree = s.lines(context.Background(), s.style)
		}
		s.frame(tree)
	}
}

// frame writes what was said, and the tree below it.
func (s *stage) frame(tree []string) {
	s.mu.Lock()
	said := s.pending.String()
	s.pending.Reset()
	s.mu.Unlock()
	if !s.out.Terminal {
		s.out.Print(said)
		return
	}
	var lines []string
	if said != "" {
		lines = strings.Split(strings.TrimSuffix(said, "\n"), "\n")
	}
	if len(tree) > 0 {
		tree = append([]string{""}, tree...)
	}
	s.out.Repaint(append(lines, tree...), s.drawn)
	s.drawn = len(tree)
}

func (s *stage) lines(ctx context.Context, style render.Style) []string {
	ctx, cancel := context.WithTimeout(ctx, stagePatience)
	defer cancel()
	root, err := s.look(ctx)
	if err != nil {
		return nil // the tree is going down
	}
	return render.Tree(root, render.TreeOptions{
		Style: style, Now: time.Now(),
		Fold:  func(n messages.Node) bool { return n.Name == sinksNode },
		Names: func(n messages.Node) string { return s.short(n.Name) },
	})
}

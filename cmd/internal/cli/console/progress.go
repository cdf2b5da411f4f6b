package console

import (
	"strconv"
	"sync"
	"time"

	"github.com/coppice-run/coppice/cmd/internal/render"
)

// When progress is shown, and how often it is repainted.
const (
	progressAfter = time.Second
	progressEvery = 120 * time.Millisecond
)

var spinner = []string{"⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"}

// Progress tells what a command waits for, once that takes over a second: on a
// terminal as one line that is repainted and removed, elsewhere as a line for
// each stage. Any goroutine may call its methods; the goroutine that paints
// ends with Done. A nil Progress tells nothing.
type Progress struct {
	w     *Output
	style render.Style

	began time.Time // when the whole began

	mu     sync.Mutex
	text   string    // guarded by mu: the stage
	detail string    // guarded by mu: where it stands
	since  time.Time // guarded by mu: when the stage began
	told   string    // guarded by mu: the last stage that was told as a line

	stop   sync.Once
	quit   chan struct{}
	joined chan struct{}
}

// StartProgress begins to tell. With quiet set and no terminal it tells
// nothing.
func (c *Console) StartProgress(text string, quiet bool) *Progress {
	if quiet && !c.Err.Terminal {
		return nil
	}
	p := &Progress{
		w: c.Err, style: c.Style(c.Err),
		text: text, since: time.Now(), began: time.Now(), quit: make(chan struct{}), joined: make(chan struct{}),
	}
	go p.paint()
	return p
}

// Stage says what is waited for now. Detail changes often; it is for a line
// that is repainted.
func (p *Progress) Stage(text, detail string) {
	if p == nil || text == "" {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.detail = detail
	if p.text != text {
		p.text, p.since = text, time.Now()
	}
}

// Done removes what is shown. It may be called more than once.
func (p *Progress) Done() {
	if p == nil {
		return
	}
	p.stop.Do(func() { close(p.quit) })
	<-p.joined
}

func (p *Progress) paint() {
	defer close(p.joined)
	tick := time.NewTicker(progressEvery)
	defer tick.Stop()
	shown := false
	for frame := 0; ; frame++ {
		select {
		case <-p.quit:
			if shown && p.w.Terminal {
				p.w.repaint("")
			}
			return
		case now := <-tick.C:
			if now.Sub(p.began) < progressAfter {
				continue
			}
			shown = true
			p.frame(frame, now)
		}
	}
}

func (p *Progress) frame(n int, now time.Time) {
	p.mu.Lock()
	text, detail, since := p.text, p.detail, p.since
	news := p.told != text
	p.told = text
	p.mu.Unlock()
	switch {
	case p.w.Terminal:
		if detail != "" {
			text += " " + detail
		}
		p.w.repaint(p.style.Fit(spinner[n%len(spinner)] + " " + text + " (" + strconv.FormatFloat(now.Sub(since).Seconds(), 'f', 1, 64) + " s)"))
	case news:
		p.w.Print("coppice: " + text + "\n")
	}
}

package supervisor

import (
	"context"
	"iter"
	"time"

	"github.com/coppice-run/coppice/messages"
)

type latch struct{}

func (l *latch) wait() <-chan struct{} { return nil }

type cell struct{ over latch }

func (c *cell) tell(any) bool         { return false }
func (c *cell) watch(func(Exit)) bool { return false }

var noProcess = Exit{Kind: messages.ExitKilled, Err: ErrNoProcess}

// Ctx is the cell's side of a behaviour. Context, Tell, Now, Beat, Hold, Note,
// Self, Key and Epoch may be called from any goroutine; the rest from the
// behaviour's own goroutine only (Init, Handle, Terminate).
type Ctx struct{ c *cell }

func (c *Ctx) Context() context.Context                          { return nil }
func (c *Ctx) Key() string                                       { return "" }
func (c *Ctx) Epoch() uint64                                     { return 0 }
func (c *Ctx) Self() Ref                                         { return Ref{} }
func (c *Ctx) Now() time.Time                                    { return time.Now() }
func (c *Ctx) Tell(msg any) bool                                 { return false }
func (c *Ctx) After(d time.Duration, msg any) (stop func())      { return nil }
func (c *Ctx) Watch(who Ref, build func(Exit) any) (stop func()) { return nil }
func (c *Ctx) Up()                                               {}
func (c *Ctx) Beat()                                             {}
func (c *Ctx) Hold(on bool)                                      {}
func (c *Ctx) Finish(w Work, answer any) bool                    { return false }
func (c *Ctx) Note(f Facts)                                      {}
func (c *Ctx) Previous() (Exit, bool)                            { return Exit{}, false }
func (c *Ctx) Served() bool                                      { return false }

// Options say how a shell supervises. The zero value is a shell without
// children.
type Options struct {
	// Name is the shell's name in events; it need not be its key.
	Name         string
	Strategy     Strategy      // nil: children that fail are stopped
	Tick         time.Duration // 0: 1 s
	Children     []Spec
	Door         Door
	MaxQueue     int // 0: 1024
	MaxAbandoned int // 0: 64
}

// Shell is a supervisor.
type Shell struct{}

func NewShell(o Options) *Shell                     { return &Shell{} }
func (s *Shell) Init(*Ctx) error                    { return nil }
func (s *Shell) Handle(*Ctx, any) error             { return nil }
func (s *Shell) Terminate(*Ctx, Exit)               {}
func (s *Shell) Submit(key string, w Work)          {}
func (s *Shell) Withdraw(key string, w Work) bool   { return false }
func (s *Shell) Send(key string, msg any) bool      { return false }
func (s *Shell) Running(key string) (Work, bool)    { return Work{}, false }
func (s *Shell) Waiting(key string) []Work          { return nil }
func (s *Shell) Restart(key string, exit Exit) bool { return false }
func (s *Shell) End(key string, exit Exit) bool     { return false }
func (s *Shell) Pin(key string, on bool) bool       { return false }
func (s *Shell) Child(key string) (ChildView, bool) { return ChildView{}, false }
func (s *Shell) Children() iter.Seq[ChildView]      { return nil }
func (s *Shell) Drain(exit Exit)                    {}
func (s *Shell) Ctx() *Ctx                          { return nil }
func (s *Shell) Now() time.Time                     { return time.Time{} }
func (s *Shell) Ref(key string) Ref                 { return Ref{} }

func Chain(s ...Strategy) Strategy                       { return nil }
func For(kind string, s Strategy) Strategy               { return nil }
func Pin(s Strategy) Strategy                            { return nil }
func RestartOnce() Strategy                              { return nil }
func Heartbeat(every time.Duration) Strategy             { return nil }
func IdleTTL(d time.Duration) Strategy                   { return nil }
func LRU(max int) Strategy                               { return nil }
func LRUQueue(max, waiting int) Strategy                 { return nil }
func Quota(perOwner int) Strategy                        { return nil }
func MaxRSS(bytes int64) Strategy                        { return nil }
func Intensity(n int, period time.Duration) Strategy     { return nil }
func EscalateAfter(n int, period time.Duration) Strategy { return nil }
func OneForOne() Strategy                                { return nil }
func OneForAll() Strategy                                { return nil }
func RestForOne() Strategy                               { return nil }

// BackoffOptions say how Backoff waits.
type BackoffOptions struct {
	Initial, Max, Reset time.Duration
	Multiplier, Jitter  float64
}

func Backoff(o BackoffOptions) Strategy { return nil }

// SystemOptions say what a system consists of.
type SystemOptions struct {
	Name       string
	Children   []Spec
	Strategy   Strategy
	OnEscalate func(Exit)
	OnEvent    func(messages.Lifecycle)
	Tick       time.Duration
	Drain      time.Duration // how long Shutdown lets running work finish. 0: 1 s
}

// System is a running tree.
type System struct{}

func Start(ctx context.Context, o SystemOptions) (*System, error)     { return nil, nil }
func (s *System) Ref(path ...string) Ref                              { return Ref{} }
func (s *System) Snapshot(ctx context.Context) (messages.Node, error) { return messages.Node{}, nil }
func (s *System) Watch(fn func(messages.Lifecycle)) (stop func())     { return nil }
func (s *System) Monitor(path ...string) <-chan Exit                  { return nil }
func (s *System) Shutdown(ctx context.Context) messages.ShutdownReport {
	return messages.ShutdownReport{}
}
func (s *System) Bugs() []string { return nil }

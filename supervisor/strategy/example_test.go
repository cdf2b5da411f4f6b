package strategy_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/coppice-run/coppice/supervisor/strategy"
)

// atNight is a strategy of one's own: it ends what is idle between two and
// three in the morning.
type atNight struct{}

func (atNight) Decide(v strategy.View, e strategy.Event) []strategy.Directive {
	if _, tick := e.(strategy.Tick); !tick || v.Now().Hour() != 2 {
		return nil
	}
	var ds []strategy.Directive
	for c := range v.Children() {
		if c.Evictable() {
			ds = append(ds, strategy.Stop(c.Key, strategy.Exit{Kind: "evicted", Err: errors.New("it is night")}))
		}
	}
	return ds
}

// A strategy is a value with one method, and chains with the others.
func ExampleStrategy() {
	s := strategy.Chain(strategy.RestartOnce(), strategy.Pin(atNight{}))
	night := view{children: []strategy.ChildView{idle("a", time.Second), busy("b"), idle("c", time.Second, pinned)}}
	for _, d := range s.Decide(nightView{night}, strategy.Tick{}) {
		fmt.Println(d.Verb, d.Key, d.Exit)
	}
	// Output: stop a evicted: it is night
}

// nightView is a view at half past two.
type nightView struct{ view }

func (nightView) Now() time.Time { return noon.Add(14*time.Hour + 30*time.Minute) }

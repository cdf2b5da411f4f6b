package main

import (
	"context"
	"errors"
	"time"

	"github.com/coppice-run/coppice/bench/peers"
	"github.com/coppice-run/coppice/bench/record"
	"github.com/coppice-run/coppice/bench/scenario"
	"github.com/coppice-run/coppice/test/backends"
)

// defaultServer is one round of the scenario crashy on a Kernel Gateway as it
// comes. Its scenario is called default-server, so that its figures are not taken
// for those of a gateway that Coppice starts.
func (o options) defaultServer(root string, round int) step {
	const sessions = 3
	return step{"default-server/" + backends.Gateway + "/3", round + 1, 45 * time.Second, func(ctx context.Context, tell func(string)) (_ record.Result, err error) {
		url, token, end, err := peers.DefaultServer(ctx, peers.Options{Python: o.python, Root: root})
		if err != nil {
			return record.Result{Scenario: "default-server", Backend: backends.Gateway, Sessions: sessions, At: time.Now(), Error: err.Error()}, err
		}
		s, err := scenario.Find("crashy")
		if err != nil {
			return record.Result{}, errors.Join(err, end())
		}
		r, err := s.Run(ctx, scenario.Setup{
			Backend: backends.Gateway, Python: o.python, GatewayURL: url, GatewayToken: token, Plant: o.Plant, Seed: o.Seed + uint64(round),
			Sessions: sessions, Duration: 30 * time.Second, Progress: tell,
		})
		r.Scenario = "default-server"
		return r, errors.Join(err, end())
	}}
}

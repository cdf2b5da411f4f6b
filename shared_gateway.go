package coppice

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/coppice-run/coppice/actors/kernel/jupyter"
)

// GatewayStatus is what can be seen of one shared gateway. It holds no secret.
type GatewayStatus struct {
	URL string `json:"url"`
	PID int    `json:"pid"`
	// State is running, silent (its process lives and does not answer) or gone (its
	// process has ended), and Why says how that was seen.
	State string `json:"state"`
	Why   string `json:"why,omitempty"`
	// Python is its interpreter, Fingerprint the name of the interpreter with its
	// environment.
	Python      string `json:"python"`
	Fingerprint string `json:"fingerprint"`
	// Shard is its number among the gateways of the fingerprint, from 0: there are
	// several when one is full (see [Options.GatewayKernels]).
	Shard   int       `json:"shard"`
	Started time.Time `json:"started"`
	// Kernels is how many kernels it has, those that wait for a session too, or -1
	// when it did not say; MaxKernels is how many it takes.
	Kernels    int `json:"kernels"`
	MaxKernels int `json:"max_kernels"`
	// Hosts is how many programs use it now, Sessions how many sessions are kept in
	// it, in use or not.
	Hosts    int `json:"hosts"`
	Sessions int `json:"sessions"`
}

// GatewayRunning is the state of a gateway that answers.
const GatewayRunning = "running"

// Gateways tells of the shared gateways of this user; of o it takes Home, Brand
// and Env. It changes nothing and waits for nobody; a gateway that does not answer
// takes it 2 s. Any goroutine may call it.
func Gateways(ctx context.Context, o Options) ([]GatewayStatus, error) {
	r, err := o.resolve()
	if err != nil {
		return nil, err
	}
	found, err := jupyter.LookShared(ctx, r.dir)
	return statuses(found), err
}

// StartGateway finds or starts the first shared gateway of o's interpreter and lets it
// go again: it stays for o.GatewayIdle, or for as long as it is used.
func StartGateway(ctx context.Context, o Options) ([]GatewayStatus, error) {
	r, err := o.resolve()
	if err != nil {
		return nil, err
	}
	if r.GatewayURL != "" {
		return nil, fmt.Errorf("%w: an external gateway is set (PI_PYTHON_GATEWAY_URL); nothing is started beside it", ErrOptions)
	}
	found, err := jupyter.StartShared(ctx, jupyter.ServerOptions{Home: r.dir, Python: r.Python, Env: r.Env, IdleEnd: r.GatewayIdle, ShardKernels: r.GatewayKernels})
	return statuses(found), err
}

// StopGateways ends all shared gateways of this user with their kernels and
// returns what was ended. Sessions that are kept in them are lost; hosts that use
// one are told and start another when they need it. ctx bounds the wait for other
// processes that start or stop one.
func StopGateways(ctx context.Context, o Options) ([]GatewayStatus, error) {
	r, err := o.resolve()
	if err != nil {
		return nil, err
	}
	found, err := jupyter.StopShared(ctx, r.dir)
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("%w; end that process and try again", err)
	}
	return statuses(found), err
}

func statuses(found []jupyter.SharedStatus) []GatewayStatus {
	all := make([]GatewayStatus, len(found))
	for i, s := range found {
		all[i] = GatewayStatus(s)
	}
	return all
}

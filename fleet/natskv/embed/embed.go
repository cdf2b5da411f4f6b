// Package embed runs a server of NATS in this process, for the directory of a fleet: with
// JetStream, and with a disk that is synced before a write is acknowledged. A program that
// imports it links the server, some 15 MB.
package embed

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// Options says what the server is.
type Options struct {
	// Dir is where it keeps what it is trusted with. Required; one server has it.
	Dir string
	// Host and Port are where clients come: 127.0.0.1 by default, and a free port for 0.
	Host string
	Port int
	// Token is what clients show. "": none is wanted, which is for this machine alone, and
	// refused for a host that is not the loopback interface's.
	Token string
	// Name is the server's, which has to differ from that of others in a cluster. "": a
	// random one.
	Name string
	// ClusterPort is where the other servers of a cluster come, on Host, and Peers are
	// where this one finds them, as HOST:PORT. They need a Token. 0: there is no cluster.
	ClusterPort int
	Peers       []string
}

// Other servers are pinged so often, and may owe so many answers: one that stands still keeps its
// connections, and by them takes each third question about an entry, which it never answers. The
// server's own times are longer than the lease of a node.
const (
	routeProbe = 1500 * time.Millisecond
	routeOwed  = 2
)

// clusterUser is whom servers take each other for.
const clusterUser = "coppice"

var errNotReady = errors.New("it takes no clients")

// Server is one that runs. Any goroutine may call its methods.
type Server struct{ s *server.Server }

// Start runs a server, and returns when it takes clients. It runs until Stop.
func Start(ctx context.Context, o Options) (*Server, error) {
	if o.Dir == "" {
		return nil, errors.New("start a server of NATS: it has no folder")
	}
	if o.Host == "" {
		o.Host = "127.0.0.1"
	}
	if o.Token == "" && o.Host != "127.0.0.1" && o.Host != "::1" && o.Host != "localhost" {
		return nil, fmt.Errorf("start a server of NATS: on %s it needs a token", o.Host)
	}
	if o.Token == "" && o.ClusterPort != 0 {
		return nil, errors.New("start a server of NATS: those of a cluster know each other by a token")
	}
	if o.Port == 0 {
		o.Port = server.RANDOM_PORT
	}
	so := &server.Options{
		ServerName: o.Name, Host: o.Host, Port: o.Port, Authorization: o.Token,
		JetStream: true, StoreDir: o.Dir, SyncAlways: true,
		NoSigs: true, NoLog: true,
	}
	if o.ClusterPort != 0 {
		so.Cluster = server.ClusterOpts{Name: "coppice", Host: o.Host, Port: o.ClusterPort, Username: clusterUser, Password: o.Token, NoAdvertise: true, PingInterval: routeProbe, MaxPingsOut: routeOwed}
		for _, peer := range o.Peers {
			u := &url.URL{Scheme: "nats-route", Host: peer}
			if o.Token != "" {
				u.User = url.UserPassword(clusterUser, o.Token)
			}
			so.Routes = append(so.Routes, u)
		}
	}
	s, err := server.NewServer(so)
	if err != nil {
		return nil, fmt.Errorf("start a server of NATS: %w", err)
	}
	s.Start()
	for !s.ReadyForConnections(50 * time.Millisecond) {
		if !s.Running() || ctx.Err() != nil {
			s.Shutdown()
			s.WaitForShutdown()
			return nil, fmt.Errorf("start a server of NATS: %w", errors.Join(errNotReady, ctx.Err()))
		}
	}
	return &Server{s: s}, nil
}

// URL is where clients come.
func (s *Server) URL() string { return s.s.ClientURL() }

// Port is that of the clients.
func (s *Server) Port() int {
	tcp, ok := s.s.Addr().(*net.TCPAddr)
	if !ok {
		return 0
	}
	return tcp.Port
}

// Stop ends the server and returns when it has ended. A second call does nothing.
func (s *Server) Stop() {
	s.s.Shutdown()
	s.s.WaitForShutdown()
}

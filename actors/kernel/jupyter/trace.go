package jupyter

import (
	"github.com/coppice-run/coppice/internal/ipctrace"
	"github.com/coppice-run/coppice/internal/jupyter"
)

// trace notes the messages of a client; nil when tracing is off.
func (s *Server) trace() func(jupyter.TraceRecord) {
	if s.o.Trace == nil {
		return nil
	}
	return func(r jupyter.TraceRecord) {
		s.o.Trace.Write(ipctrace.Record{
			Backend: Name, Kernel: r.Kernel, Direction: string(r.Direction), Channel: r.Channel, Type: r.Type, ID: r.ID, Parent: r.Parent, Bytes: r.Bytes,
			Method: r.Method, Path: r.Path, Code: r.Code, Millis: float64(r.Duration.Microseconds()) / 1000,
		})
	}
}

package access

import (
	"net/http"

	"github.com/coppice-run/coppice/cmd/internal/httpserver"
)

// tenantInfo is what admins see of a tenant.
type tenantInfo struct {
	Tenant string `json:"tenant"`
	// Running says that its host was started, and Sessions how many of its sessions live.
	Running  bool `json:"running"`
	Sessions int  `json:"sessions"`
}

// mounts are what is for admins.
//
//	GET  /api/tenants    the tenants that have a token which opens something
//	POST /api/shutdown   asks the program to end, in order
func (s *Server) mounts() []httpserver.Mount {
	return []httpserver.Mount{
		{Pattern: "GET /api/tenants", Scope: httpserver.Admin, Handler: http.HandlerFunc(s.list)},
		{Pattern: "POST /api/shutdown", Scope: httpserver.Admin, Handler: http.HandlerFunc(s.shutdown)},
	}
}

func (s *Server) list(w http.ResponseWriter, r *http.Request) {
	up := s.running()
	list := []tenantInfo{}
	for _, name := range s.o.Tokens.Tenants() {
		info := tenantInfo{Tenant: name}
		if p := up[name]; p != nil {
			n, err := p.Sessions(r.Context())
			if err != nil {
				httpserver.Error(w, http.StatusServiceUnavailable, "unavailable", "the sessions of "+name+" could not be counted: "+err.Error(), "ask again")
				return
			}
			info.Running, info.Sessions = true, n
		}
		list = append(list, info)
	}
	httpserver.Answer(w, r, http.StatusOK, map[string]any{"tenants": list})
}

func (s *Server) shutdown(w http.ResponseWriter, r *http.Request) {
	s.o.Logger.Warn("the server was asked to end", "token", httpserver.PassOf(r.Context()).ID)
	httpserver.JSON(w, http.StatusAccepted, map[string]bool{"ending": true})
	s.o.Shutdown()
}

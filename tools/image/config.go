package main

import (
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// The user of the image, who owns nothing of it but the home, and the places that it
// may write to: with a root that is read-only, these are volumes or tmpfs.
const (
	user  = 65532
	home  = "/home/coppice"
	work  = "/work"
	venv  = "/opt/coppice/python"
	where = "/usr/bin/coppice"
)

// config is how the image runs.
func (b build) config(arch string) *v1.ConfigFile {
	return &v1.ConfigFile{
		OS: "linux", Architecture: arch, Created: v1.Time{Time: b.epoch},
		RootFS: v1.RootFS{Type: "layers"},
		Config: v1.Config{
			User:       "65532:65532",
			WorkingDir: work,
			// The first process reaps those that are left to it, and passes signals on.
			Entrypoint: []string{"/usr/bin/tini", "--", where},
			Cmd:        []string{"serve"},
			Env: []string{
				"PATH=" + venv + "/bin:/usr/local/bin:/usr/bin:/bin",
				"HOME=" + home,
				"VIRTUAL_ENV=" + venv,
				"LANG=C.UTF-8",
				"PYTHONDONTWRITEBYTECODE=1",
			},
			Volumes:    map[string]struct{}{home: {}, work: {}},
			StopSignal: "SIGTERM",
			Healthcheck: &v1.HealthConfig{
				Test:     []string{"CMD", where, "health"},
				Interval: 30 * time.Second, Timeout: 15 * time.Second, StartPeriod: time.Minute, Retries: 3,
			},
			Labels: map[string]string{
				"org.opencontainers.image.title":       "Coppice",
				"org.opencontainers.image.description": "Python sessions that stay alive",
				"org.opencontainers.image.source":      "https://github.com/coppice-run/coppice",
				"org.opencontainers.image.licenses":    "MIT",
				"org.opencontainers.image.version":     b.version,
				"org.opencontainers.image.revision":    b.revision,
				"org.opencontainers.image.created":     b.epoch.Format(time.RFC3339),
			},
		},
	}
}

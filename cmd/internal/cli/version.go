package cli

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/coppice-run/coppice/cmd/internal/cli/console"
)

// version is set by the linker; a build without that asks the module system.
var version = ""

// versionInfo is what version --json prints.
type versionInfo struct {
	Version string `json:"version"`
	Commit  string `json:"commit"`
	Go      string `json:"go"`
	OS      string `json:"os"`
	Arch    string `json:"arch"`
}

// String is what version prints behind the name.
func (v versionInfo) String() string {
	return fmt.Sprintf("%s (%s, %s/%s)", v.Version, v.Go, v.OS, v.Arch)
}

func readVersion() versionInfo {
	v := versionInfo{Version: version, Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	if v.Version == "" {
		v.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			v.Commit = s.Value
		}
	}
	return v
}

func (a *app) versionCommand() *cobra.Command {
	var asJSON bool
	cmd := console.Command{
		Use:   "version",
		Short: "Print the version",
		Run: func(context.Context, []string) error {
			v := readVersion()
			if asJSON {
				return a.WriteJSON(v)
			}
			a.Out.Print("coppice " + v.String() + "\n")
			return nil
		},
	}.Make()
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

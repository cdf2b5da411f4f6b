package workspace

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/cmd/internal/cli/console"
	"github.com/coppice-run/coppice/cmd/internal/render"
)

func (a *app) filesCommand() *cobra.Command {
	var all bool
	cmd := console.Command{
		Use: "files WORKSPACE [FOLDER]", Short: "List the files of a workspace", Errors: console.ServerFailure,
		Args: console.Arguments{Least: 1, Most: 2, Wants: "files wants the name of a workspace, and maybe a folder in it"},
		Run: func(ctx context.Context, args []string) error {
			o := client.ListFiles{}
			if len(args) > 1 {
				o.Path = args[1]
			}
			if all {
				o.Depth = -1
			}
			return a.WithServer(func(c *client.Client) error {
				list, err := c.ListFiles(ctx, args[0], o)
				if err != nil {
					return err
				}
				if a.json {
					return a.WriteJSON(list)
				}
				rows := make([][]string, 0, len(list.Files))
				for _, f := range list.Files {
					rows = append(rows, fileRow(f))
				}
				a.Out.Lines(render.Table(a.Style(a.Out), rows, false)...)
				if list.More {
					a.Err.Lines(fmt.Sprintf("coppice: only the first %d are shown; name a folder", len(list.Files)))
				}
				return nil
			})
		},
	}.Make()
	cmd.Flags().BoolVarP(&all, "recursive", "r", false, "list what is in folders, too")
	return cmd
}

// fileRow is a file in a table.
func fileRow(f client.File) []string {
	size, name := render.Bytes(f.Size), argument(f.Path)
	switch f.Kind {
	case client.FileRegular:
	case client.FileDirectory:
		size, name = "", name+"/"
	case client.FileLink:
		size, name = "link", name+" -> "+argument(f.Target)
	case client.FileOther:
		size = "other"
	}
	if f.NotUTF8 {
		name += "  (its name is no UTF-8)"
	}
	return []string{f.Mode, size, f.Modified.Local().Format(time.DateTime), name}
}

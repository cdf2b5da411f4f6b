package notebook

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/coppice-run/coppice/cmd/internal/cli/console"
	"github.com/coppice-run/coppice/notebook"
	"github.com/coppice-run/coppice/notebook/page"
)

// exportFlags are those of export.
type exportFlags struct {
	to, output, images, title string
	noOutputs, noCode         bool
}

// ExportCommand is coppice export.
func ExportCommand(c *console.Console) *cobra.Command {
	a := &app{Console: c}
	var f exportFlags
	cmd := console.Command{
		Use: "export FILE.ipynb", Short: "Write a notebook as HTML, Markdown or a script",
		Long: `Write a notebook as something else: one HTML page that needs no network and
runs nothing of the notebook (its one script fits frames to what is in them), a
Markdown document, or a Python script in the percent format. It goes to
standard output, or to the file of --output, whose extension says the form.`,
		Example: `  coppice export report.ipynb -o report.html
  coppice export report.ipynb --to md --images figures > report.md
  coppice export report.ipynb -o report.py`,
		Args: console.Arguments{Least: 1, Most: 1}, Errors: failure,
		Run: func(ctx context.Context, args []string) error { return a.export(ctx, args[0], f) },
	}.Make()
	flags := cmd.Flags()
	flags.StringVar(&f.to, "to", "", "the form: html, md or py (default: by --output, else html)")
	flags.StringVarP(&f.output, "output", "o", "", "the file to write; one that is there is replaced")
	flags.StringVar(&f.images, "images", "", "write the pictures of a Markdown document into this folder (default: into the document)")
	flags.StringVar(&f.title, "title", "", "the title of a page (default: the first heading)")
	flags.BoolVar(&f.noOutputs, "no-outputs", false, "leave outputs out")
	flags.BoolVar(&f.noCode, "no-code", false, "leave the code out of a page")
	return cmd
}

func (a *app) export(ctx context.Context, path string, f exportFlags) error {
	form := f.to
	if form == "" {
		form = strings.TrimPrefix(strings.ToLower(filepath.Ext(f.output)), ".")
	}
	d, err := a.readNotebook(ctx, path)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	switch form {
	case "html", "htm", "":
		err = page.Write(&b, d, page.Options{Title: f.title, NoOutputs: f.noOutputs, NoCode: f.noCode})
	case "md", "markdown":
		o := &notebook.MarkdownOptions{NoOutputs: f.noOutputs}
		var wrong error
		if f.images != "" {
			o.Image = imageWriter(f.images, &wrong)
		}
		b.WriteString(d.Markdown(o))
		err = wrong
	case "py", "script":
		b.WriteString(d.Percent(&notebook.PercentOptions{Header: true}))
	default:
		return console.Usagef("a notebook is exported to html, md or py, not to %q", form)
	}
	if err != nil {
		return err
	}
	if f.output == "" || f.output == "-" {
		_, err = a.Out.Write(b.Bytes())
		return err
	}
	if same, _ := sameFile(path, f.output); same {
		return console.Usagef("--output is %s itself", path)
	}
	return os.WriteFile(f.output, b.Bytes(), 0o666) //nolint:gosec // who may read it is up to the umask of its user
}

// imageWriter writes pictures into a folder, and links to them. The first thing
// that goes wrong is left in wrong.
func imageWriter(dir string, wrong *error) func(mime string, data []byte) string {
	n := 0
	return func(mime string, data []byte) string {
		ext := map[string]string{"image/png": "png", "image/jpeg": "jpg", "image/gif": "gif", "image/webp": "webp", "image/svg+xml": "svg"}[mime]
		if ext == "" {
			ext = "bin"
		}
		n++
		name := filepath.Join(dir, fmt.Sprintf("picture-%d.%s", n, ext))
		err := os.MkdirAll(dir, 0o777) //nolint:gosec // as its user makes folders
		if err == nil {
			err = os.WriteFile(name, data, 0o666) //nolint:gosec // and files
		}
		if err != nil && *wrong == nil {
			*wrong = err
		}
		return filepath.ToSlash(name)
	}
}

package notebook

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/coppice-run/coppice/notebook"
)

// textFormat is the flag that says how a text of a notebook is written.
type textFormat struct{ Format notebook.TextFormat }

// textFormats are the values of the flag.
var textFormats = map[string]notebook.TextFormat{
	"auto": notebook.FormatAuto, "view": notebook.FormatCells, "percent": notebook.FormatPercent,
}

// add adds the flag to a command.
func (f *textFormat) add(cmd *cobra.Command) {
	cmd.Flags().Var(f, "format", "how the text is written: view (as coppice notebook show writes it), percent (a script with # %% lines), or auto")
}

// Set reads the flag.
func (f *textFormat) Set(text string) error {
	format, known := textFormats[text]
	if !known {
		return errors.New("it must be auto, view or percent")
	}
	f.Format = format
	return nil
}

// String is what the flag says.
func (f *textFormat) String() string {
	for name, format := range textFormats {
		if format == f.Format {
			return name
		}
	}
	return ""
}

// Type is what help calls the flag's value.
func (f *textFormat) Type() string { return "string" }

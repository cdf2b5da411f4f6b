package mcpserver

import "github.com/coppice-run/coppice/messages"

// structured is what a program gets of a call beside the text: how it ended, without what
// it showed. The text is in the content, where a model reads it; a client that hands both
// to its model would pay for it twice, or three times.
func structured(r messages.Result) messages.Result {
	r.Text, r.Images = "", nil
	r.Cells = append([]messages.CellResult{}, r.Cells...)
	for i := range r.Cells {
		c := &r.Cells[i]
		c.Output = ""
		if c.Error != nil {
			short := *c.Error
			short.Traceback, short.UserTraceback, short.Summary = nil, "", ""
			c.Error = &short
		}
	}
	return r
}

package result

import (
	"fmt"
	"slices"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/sinks/budget"
)

// entry is one image or JSON value that a display showed.
type entry struct {
	cell    int
	display string // its name, if it can be updated
	image   messages.Image
	json    messages.RawJSON
}

// size is what the entry counts.
func (x entry) size() int { return len(x.image.Data) + len(x.json) }

// captured holds the images and JSON values of a call in the order in which
// they came.
type captured struct {
	o       Options
	entries []entry
	// used counts entries and bytes; [0] images, [1] JSON.
	count, bytes [2]int
}

func (x entry) kind() int {
	if x.json != nil {
		return 1
	}
	return 0
}

// add captures what a display has, in place at, or last if that is negative, and
// returns notes about what it does not keep.
// keep stores what is no image elsewhere, and says where.
func (c *captured) add(cell int, e messages.Display, at int, keep func(about, extension string, data []byte) string) (notes []string) {
	put := func(x entry, mime string) {
		x.cell, x.display = cell, e.DisplayID
		note := c.put(x, mime, at)
		switch {
		case note != "":
			notes = append(notes, note)
		case at >= 0:
			at++
		}
	}
	for _, mime := range imageTypes {
		text, ok := e.Data.Text(mime)
		if !ok {
			continue
		}
		data, ok := base64Data(text)
		if !ok {
			notes = append(notes, keep(mime+" not shown, its data is not base64", "log", []byte(text)))
			continue
		}
		picture, err := readImage(data)
		if err != nil {
			notes = append(notes, keep(mime+" not shown, "+err.Error(), "bin", data))
			continue
		}
		put(entry{image: fitImage(picture, data, c.o.MaxImageEdge)}, mime)
	}
	if raw, ok := e.Data[messages.MIMEJSON]; ok {
		put(entry{json: raw}, messages.MIMEJSON)
	}
	return notes
}

// put keeps an entry if there is room for it, and else says why not.
func (c *captured) put(x entry, mime string, at int) string {
	k, n := x.kind(), x.size()
	limits := [2][2]int{{c.o.Images, c.o.ImageBytes}, {c.o.JSON, c.o.JSONBytes}}[k]
	switch {
	case c.count[k] >= limits[0]:
		return fmt.Sprintf("%s of %s not kept: the call has %d already", mime, budget.Size(int64(n)), limits[0])
	case c.bytes[k]+n > limits[1]:
		return fmt.Sprintf("%s of %s not kept: the limit of a call is %s", mime, budget.Size(int64(n)), budget.Size(int64(limits[1])))
	}
	c.count[k]++
	c.bytes[k] += n
	if at < 0 {
		at = len(c.entries)
	}
	c.entries = slices.Insert(c.entries, at, x)
	return ""
}

// forget removes the entries that gone selects, and returns where the first of
// them was, -1 if there was none.
func (c *captured) forget(gone func(entry) bool) int {
	first := slices.IndexFunc(c.entries, gone)
	c.entries = slices.DeleteFunc(c.entries, func(x entry) bool {
		if !gone(x) {
			return false
		}
		c.count[x.kind()]--
		c.bytes[x.kind()] -= x.size()
		return true
	})
	return first
}

// images returns the images, nil if there are none.
func (c *captured) images() []messages.Image {
	var out []messages.Image
	for _, x := range c.entries {
		if x.kind() == 0 {
			out = append(out, x.image)
		}
	}
	return out
}

// json returns the JSON values, nil if there are none.
func (c *captured) json() []messages.RawJSON {
	var out []messages.RawJSON
	for _, x := range c.entries {
		if x.kind() == 1 {
			out = append(out, x.json)
		}
	}
	return out
}

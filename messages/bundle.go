package messages

import "encoding/json"

// RawJSON is a JSON value that is carried, not understood.
type RawJSON = json.RawMessage

// Bundle is a MIME bundle as the Jupyter messaging specification defines it
// ("display_data"): MIME type to JSON value. Text and base64 data are JSON
// strings; application/json and the +json types are any JSON value.
type Bundle map[string]RawJSON

// MIME types that Coppice treats by name.
const (
	MIMEPlain    = "text/plain"
	MIMEMarkdown = "text/markdown"
	MIMEHTML     = "text/html"
	MIMELaTeX    = "text/latex"
	MIMEJSON     = "application/json"
	MIMEPNG      = "image/png"
	MIMEJPEG     = "image/jpeg"
	MIMEGIF      = "image/gif"
	MIMEWebP     = "image/webp"
	MIMESVG      = "image/svg+xml"
	// MIMEChart is the data of a chart: an object with its type and elements. MIMETable is
	// the columns of a table by name, each a list. Kernels show either for sessions that
	// have COPPICE_CHARTS set in their environment, beside the other forms.
	MIMEChart = "application/vnd.coppice.chart+json"
	MIMETable = "application/vnd.coppice.table+json"
)

// StatusMIME returns the MIME type of status events for a brand:
// application/x-<brand>-status.
func StatusMIME(brand string) string { return "application/x-" + brand + "-status" }

// Text returns the value of a text type. Jupyter also allows a list of lines
// (nbformat's multi-line strings); these are joined.
func (b Bundle) Text(mime string) (string, bool) {
	raw, ok := b[mime]
	if !ok {
		return "", false
	}
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s, true
	}
	var lines []string
	if json.Unmarshal(raw, &lines) != nil {
		return "", false
	}
	n := 0
	for _, l := range lines {
		n += len(l)
	}
	joined := make([]byte, 0, n)
	for _, l := range lines {
		joined = append(joined, l...)
	}
	return string(joined), true
}

// Size returns how many bytes of data the bundle holds.
func (b Bundle) Size() int {
	n := 0
	for mime, raw := range b {
		n += len(mime) + len(raw)
	}
	return n
}

// Image is one picture that a call showed.
type Image struct {
	// MIME is image/png or image/jpeg.
	MIME string `json:"mime"`
	// Data is base64 without line breaks: as the kernel sent it, or made smaller.
	Data string `json:"data"`
	// Width and Height are in pixels; 0 when the image could not be read.
	Width  int `json:"width,omitempty"`
	Height int `json:"height,omitempty"`
	// OriginalWidth and OriginalHeight are set when Data was made smaller.
	OriginalWidth  int `json:"original_width,omitempty"`
	OriginalHeight int `json:"original_height,omitempty"`
}

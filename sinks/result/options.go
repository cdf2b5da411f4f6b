package result

import (
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/sinks/artifact"
	"github.com/coppice-run/coppice/sinks/budget"
)

// MinShare is what every cell of a call may show, however many cells there are.
const (
	MinShare      = 1 << 10 // bytes
	MinShareLines = 20
)

// Options bound what a [Fold] keeps. The zero value is the documented default.
type Options struct {
	// Brand names the status MIME type. "": coppice.
	Brand string
	// Budget is the text of the whole call.
	Budget budget.Options
	// Tokens gives the text another shape: at most so many tokens from the beginning,
	// as [EstimateTokens] counts them, and [BuildText] reminds the model of the rest
	// and of the file that has it. Budget's bytes and lines are passed over then. 0:
	// the text keeps its head and its tail, as Budget says.
	Tokens int
	// Store takes the raw output of a call whose text is cut. nil, or one
	// without a directory: it is lost.
	Store *artifact.Store
	// Images and ImageBytes bound the images of a call, the bytes as base64.
	// 0: 128 images, 32 MiB.
	Images, ImageBytes int
	// MaxImageEdge is how many pixels an image may have on its longer side; a
	// larger one is made smaller. 0: 1,568; negative: images stay as they are.
	MaxImageEdge int
	// JSON and JSONBytes bound the JSON displays of a call. 0: 64, 1 MiB.
	JSON, JSONBytes int
	// JSONText is how many bytes of a JSON display are shown as text. 0: 8000.
	JSONText int
	// Events and EventBytes bound the status events of a call. 0: 1000,
	// 256 KiB.
	Events, EventBytes int
}

// withDefaults returns o with its zero fields filled in.
func (o Options) withDefaults() Options {
	def := func(v *int, d int) {
		if *v <= 0 {
			*v = d
		}
	}
	def(&o.Images, 128)
	def(&o.ImageBytes, 32<<20)
	def(&o.JSON, 64)
	def(&o.JSONBytes, 1<<20)
	def(&o.JSONText, 8000)
	def(&o.Events, 1000)
	def(&o.EventBytes, 256<<10)
	if o.MaxImageEdge == 0 {
		o.MaxImageEdge = DefaultImageEdge
	}
	if o.Brand == "" {
		o.Brand = "coppice"
	}
	if n := o.Tokens; n > 0 {
		// More of the head than the tokens can have, so that they decide: one has 4
		// characters at most, of 1 byte each, and a head may be cut by a quarter.
		const most = 4 * 4
		o.Budget.Bytes, o.Budget.HeadBytes, o.Budget.TailOnly, o.Budget.Lines = most*n, most*n, false, most*n
	}
	o.Budget = o.Budget.WithDefaults()
	return o
}

// maxSlots is how many displays of a call can be updated.
const maxSlots = 256

func (o Options) statusMIME() string { return messages.StatusMIME(o.Brand) }

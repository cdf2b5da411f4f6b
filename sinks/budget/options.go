package budget

// The defaults of a budget.
const (
	DefaultBytes     = 50 << 10
	DefaultLines     = 3000
	DefaultHeadBytes = 20 << 10
)

// Options bound what a [Window] shows. The zero value is the documented
// default.
type Options struct {
	// Bytes is how many bytes are shown. 0: 50 KiB.
	Bytes int
	// Lines is how many lines are shown. 0: 3000.
	Lines int
	// HeadBytes is how many of Bytes go to the beginning of the text; the rest
	// goes to its end. The lines are shared out in the same proportion.
	// 0: 20 KiB, or two fifths of Bytes if that is less.
	HeadBytes int
	// TailOnly shows the end of the text alone, whatever HeadBytes says.
	TailOnly bool
	// Columns cuts every line to so many bytes; "…" stands for the rest. 0:
	// lines are not cut.
	Columns int
}

// WithDefaults returns o with its zero fields filled in.
func (o Options) WithDefaults() Options {
	if o.Bytes <= 0 {
		o.Bytes = DefaultBytes
	}
	if o.Lines <= 0 {
		o.Lines = DefaultLines
	}
	if o.HeadBytes <= 0 {
		o.HeadBytes = min(DefaultHeadBytes, o.Bytes*2/5)
	}
	o.HeadBytes = min(o.HeadBytes, o.Bytes)
	if o.TailOnly {
		o.HeadBytes = 0
	}
	return o
}

// Brief reports whether a text of so many bytes is shown as it is, however it is made up.
func (o Options) Brief(bytes int) bool {
	o = o.WithDefaults()
	return o.Columns == 0 && !o.TailOnly && o.HeadBytes >= bytes && o.headLines() >= bytes
}

// headLines is the head's part of the lines.
func (o Options) headLines() int {
	return int(int64(o.Lines) * int64(o.HeadBytes) / int64(o.Bytes))
}

// Stats say what a window shows of what was written. The counts are of the text
// after a column cut, which is counted apart.
type Stats struct {
	TotalBytes, TotalLines int64
	// ShownBytes and ShownLines do not count the marker.
	ShownBytes, ShownLines int64
	// HeadLines and TailLines add up to ShownLines when something is elided.
	HeadLines, TailLines int64
	// Truncated says that something is elided.
	Truncated bool
	// By is the limit that was passed first: "bytes" or "lines".
	By string
	// CutLines counts the lines that were longer than Columns, CutBytes what
	// they lost.
	CutLines, CutBytes int64
}

package notebook

import (
	"bufio"
	"bytes"
	"io"
	"unicode/utf8"
)

// Document is a notebook in memory. It holds the bytes it was read from and
// the edits made since; what no edit touched is written back byte for byte.
//
// A Document is for one goroutine at a time.
type Document struct {
	// Stale says what an edit of a code cell's source does to its outputs. The
	// zero value keeps and marks them.
	Stale StalePolicy
	// NewID makes ids for new cells; nil means eight random hexadecimal
	// digits, as nbformat does it. It is asked again while what it returns is
	// in use, at most a hundred times.
	NewID func() string

	src        []byte // what was read
	head, tail []byte // byte order mark and white space around the root
	root       *node
	list       *node // the array of cells
	cells      []*Cell
	// minor is nbformat_minor, 0 when the file has none.
	minor int
	// from is the major version that was upgraded in memory, 0 for none. As
	// long as edited is false, src is what is written.
	from   int
	edited bool
	// nonFinite is the offset of the first NaN or Infinity in src, -1 for none.
	nonFinite int
	st        *style // use style()
}

var utf8BOM = []byte("\xef\xbb\xbf")

// New returns an empty notebook, nbformat 4.5.
func New() *Document {
	d, err := Parse([]byte("{\n \"cells\": [],\n \"metadata\": {},\n \"nbformat\": 4,\n \"nbformat_minor\": 5\n}\n"))
	if err != nil {
		panic("notebook: the empty notebook does not parse: " + err.Error())
	}
	return d
}

// Parse reads a notebook: any nbformat 4, and nbformat 3, which is upgraded
// in memory to 4.5. The document keeps data and never writes into it;
// the caller must not either.
//
// The work is one walk over the bytes; outputs are not decoded before they are
// asked for. The error is an [*Error] of kind ErrInvalidJSON, ErrStructure,
// ErrCell or ErrVersion.
func Parse(data []byte) (*Document, error) {
	d := &Document{src: data}
	if bytes.HasPrefix(data, []byte("\xff\xfe")) || bytes.HasPrefix(data, []byte("\xfe\xff")) {
		return nil, fault(ErrInvalidJSON, "the file is UTF-16, notebooks are UTF-8")
	}
	if !utf8.Valid(data) {
		return nil, jsonFault(data, &syntaxError{offset: invalidUTF8(data), reason: "not UTF-8"})
	}
	s := newScanner(data)
	if bytes.HasPrefix(data, utf8BOM) {
		s.pos = len(utf8BOM)
	}
	s.space()
	d.head = data[:s.pos:s.pos]
	root, err := parseNode(s, 2)
	if err != nil {
		return nil, jsonFault(data, err)
	}
	d.tail = s.space()
	if s.pos < len(data) {
		return nil, jsonFault(data, s.fail("expected the end of the file, found %s", s.describe()))
	}
	d.root, d.nonFinite = root, s.nonFinite
	if root.kind() != kindObject {
		return nil, fault(ErrStructure, "expected object")
	}
	if err := d.adopt(); err != nil {
		return nil, err
	}
	return d, nil
}

func invalidUTF8(data []byte) int {
	i := 0
	for i < len(data) {
		r, n := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && n == 1 {
			break
		}
		i += n
	}
	return i
}

// adopt finds the cells under the root, checks what every later step relies
// on, and upgrades what is older than nbformat 4.
func (d *Document) adopt() error {
	major, known := d.root.get("nbformat").integer()
	if known && major > 4 {
		return fault(ErrVersion, "nbformat %d is newer than 4", major)
	}
	list := d.root.get("cells")
	if list == nil && d.root.get("worksheets") != nil {
		if known && major < 3 {
			return fault(ErrVersion, "nbformat %d is older than 3", major)
		}
		if err := d.upgradeWorksheets(); err != nil {
			return err
		}
		d.from = 3
		list = d.root.get("cells")
	}
	if list == nil || list.kind() != kindArray {
		return fault(ErrStructure, "missing cells array")
	}
	d.list = list
	d.minor, _ = d.root.get("nbformat_minor").integer()
	d.cells = make([]*Cell, 0, len(list.items))
	for i, it := range list.items {
		c, reason := newCell(d, it.val)
		if reason != "" {
			return &Error{Kind: ErrCell, Cell: i, Reason: reason}
		}
		d.cells = append(d.cells, c)
	}
	return nil
}

// Bytes returns the notebook as it is to be written.
func (d *Document) Bytes() []byte {
	if !d.edited {
		return bytes.Clone(d.src)
	}
	var b bytes.Buffer
	b.Grow(len(d.src) + len(d.src)/16)
	_, _ = d.emit(&b) // a bytes.Buffer takes everything
	return b.Bytes()
}

// WriteTo writes the notebook without building it in memory first.
func (d *Document) WriteTo(w io.Writer) (int64, error) {
	if !d.edited {
		n, err := w.Write(d.src)
		return int64(n), err
	}
	buf := bufio.NewWriterSize(w, 1<<16)
	n, err := d.emit(buf)
	if err == nil {
		err = buf.Flush()
	}
	return n, err
}

func (d *Document) emit(w io.Writer) (int64, error) {
	ew := errWriter{w: w}
	ew.write(d.head)
	d.root.writeTo(&ew)
	ew.write(d.tail)
	return ew.n, ew.err
}

// Edited reports whether an edit changed anything since the document was read
// or made. Edits that set what is there already do not count.
func (d *Document) Edited() bool { return d.edited }

// Clone returns a copy that is edited apart from d. It shares the bytes that
// were read.
func (d *Document) Clone() *Document {
	c := *d
	c.root = d.root.clone()
	c.list = c.root.get("cells")
	c.cells = make([]*Cell, len(d.cells))
	for i, cell := range d.cells {
		c.cells[i] = &Cell{doc: &c, n: c.list.items[i].val, typ: cell.typ}
	}
	return &c
}

// Version returns the nbformat that the document is in: what the file says,
// and 4.5 for an older notebook that was upgraded.
func (d *Document) Version() (major, minor int) { return 4, d.minor }

// UpgradedFrom returns the major nbformat of the file when it was older than
// 4, and 0 otherwise. Such a notebook is written as it was as long as nothing
// is edited, and as nbformat 4.5 after the first edit or [Document.Upgrade].
func (d *Document) UpgradedFrom() int { return d.from }

// Language returns the programming language that the metadata names, in lower
// case: language_info.name, else kernelspec.language; empty when there is
// neither.
func (d *Document) Language() string { return language(d.root.get("metadata")) }

// KernelName returns the name of the kernel specification that the metadata
// asks for; empty when there is none.
func (d *Document) KernelName() string {
	name, _ := d.root.at("metadata", "kernelspec", "name").str()
	return name
}

// hasIDs reports whether cells of this nbformat have ids.
func (d *Document) hasIDs() bool { return d.minor >= 5 }

func (d *Document) style() *style {
	if d.st == nil {
		d.st = detectStyle(d.root, d.src)
	}
	return d.st
}

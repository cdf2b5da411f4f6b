package notebook

import (
	"slices"
	"time"
)

// SetOutputs replaces the outputs and the prompt number of a code cell; count
// 0 is null. They belong to the source that the cell has now, so a mark that
// they are stale goes away. A cell that is not code is an error.
func (d *Document) SetOutputs(ref Ref, count int, outputs ...Output) error {
	c, err := d.findCode(ref)
	if err != nil {
		return err
	}
	d.setOutputs(c, count, outputs)
	return nil
}

func (d *Document) findCode(ref Ref) (*Cell, error) {
	c, err := d.Find(ref)
	if err != nil {
		return nil, err
	}
	if c.typ != Code {
		return nil, fault(ErrArgument, "cell %s is %s, outputs are for code cells", ref, c.typ)
	}
	return c, nil
}

func (d *Document) setOutputs(c *Cell, count int, outputs []Output) {
	list := newArray()
	for _, o := range outputs {
		list.items = append(list.items, item{val: o.node(), fresh: true})
	}
	if !same(c.n.get("outputs"), list) {
		d.setMember(c, "outputs", list)
	}
	number := newNull()
	if count > 0 {
		number = newInt(count)
	}
	if !same(c.n.get("execution_count"), number) {
		d.setMember(c, "execution_count", number)
	}
	d.setMark(c, "")
}

// ClearOutputs removes the outputs of code cells and sets their prompt numbers
// to null; without refs, of all code cells. Cells of other types are passed
// over. It returns how many cells changed.
func (d *Document) ClearOutputs(refs ...Ref) (int, error) {
	cells := d.cells
	if len(refs) > 0 {
		cells = nil
		for _, ref := range refs {
			c, err := d.Find(ref)
			if err != nil {
				return 0, err
			}
			cells = append(cells, c)
		}
	}
	changed := 0
	for _, c := range cells {
		if d.clearOutputs(c) {
			changed++
		}
	}
	return changed, nil
}

// StripOptions say what [Document.Strip] takes away.
type StripOptions struct {
	// Force strips cells, too, that ask to keep their outputs: with the tag
	// keep_output, or keep_output or init_cell true in their metadata.
	Force bool
	// KeepCounts keeps prompt numbers.
	KeepCounts bool
	// CellMetadata names members of cells' metadata to remove. nil means those
	// in which frontends keep how a cell ran and was shown: collapsed,
	// scrolled, hidden, heading_collapsed, ExecuteTime, execution.
	CellMetadata []string
	// NotebookMetadata names members of the notebook's metadata to remove. nil
	// means widgets and signature.
	NotebookMetadata []string
}

// Strip removes what running the notebook left in it, so that its source can
// be kept under version control. It returns how many cells changed. opts may be
// nil.
func (d *Document) Strip(opts *StripOptions) int {
	var o StripOptions
	if opts != nil {
		o = *opts
	}
	if o.CellMetadata == nil {
		o.CellMetadata = []string{"collapsed", "scrolled", "hidden", "heading_collapsed", "ExecuteTime", "execution"}
	}
	if o.NotebookMetadata == nil {
		o.NotebookMetadata = []string{"widgets", "signature"}
	}
	for _, name := range o.NotebookMetadata {
		d.RemoveNotebookMetadata(name)
	}
	changed := 0
	for _, c := range d.cells {
		if d.strip(c, o) {
			changed++
		}
	}
	return changed
}

func (d *Document) strip(c *Cell, o StripOptions) bool {
	changed := false
	if c.typ == Code && (o.Force || !c.keepsOutput()) {
		count := c.n.get("execution_count")
		ran := count != nil && count.kind() != kindNull
		switch {
		case o.KeepCounts && ran:
			if c.OutputCount() > 0 {
				d.setMember(c, "outputs", newArray())
				changed = true
			}
			d.setMark(c, "")
		default:
			changed = d.clearOutputs(c)
		}
	}
	for _, name := range o.CellMetadata {
		if d.removeMetadata(c, name) {
			changed = true
		}
	}
	return changed
}

func (c *Cell) keepsOutput() bool {
	isTrue := func(name string) bool {
		n := c.n.at("metadata", name)
		return n != nil && n.kind() == kindTrue
	}
	return isTrue("keep_output") || isTrue("init_cell") || slices.Contains(c.Tags(), "keep_output")
}

// Timing is when the steps of a cell's execution happened, as JupyterLab
// records them. A zero time is left out.
type Timing struct {
	// Busy and Idle are the kernel's status messages around the execution.
	Busy, Idle time.Time
	// Input is the execute_input message.
	Input time.Time
	// ReplyStarted and Reply are the started time and the date of the
	// execute_reply message.
	ReplyStarted, Reply time.Time
}

// SetTiming writes metadata.execution of a code cell (nbformat 4.4): times in
// UTC, ISO 8601 with microseconds. The zero Timing removes it.
func (d *Document) SetTiming(ref Ref, t Timing) error {
	c, err := d.findCode(ref)
	if err != nil {
		return err
	}
	d.setTiming(c, t)
	return nil
}

func (d *Document) setTiming(c *Cell, t Timing) {
	const format = "2006-01-02T15:04:05.000000Z"
	var members []member
	for _, step := range []struct {
		name string
		at   time.Time
	}{
		{"iopub.execute_input", t.Input},
		{"iopub.status.busy", t.Busy},
		{"iopub.status.idle", t.Idle},
		{"shell.execute_reply", t.Reply},
		{"shell.execute_reply.started", t.ReplyStarted},
	} {
		if !step.at.IsZero() {
			members = append(members, member{step.name, newString(step.at.UTC().Format(format))})
		}
	}
	if len(members) == 0 {
		d.removeMetadata(c, "execution")
		return
	}
	d.setMetadata(c, newObject(members...), "execution")
}

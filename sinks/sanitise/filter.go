package sanitise

// Filter makes a stream harmless for the terminal that it is written to: what
// could change the terminal, its title, its clipboard or its size, or make it
// answer, is removed. Printable text, newline, tab, carriage return and
// backspace pass. The zero value lets no control sequence pass.
type Filter struct {
	// Colour lets SGR (colours, bold and so on) and EL (erase in line, which
	// progress bars use) pass.
	Colour bool

	decoder decoder
	out     []byte
	styled  bool
}

// Append appends what passes of chunk to dst.
func (f *Filter) Append(dst []byte, chunk string) []byte {
	f.out = dst
	f.decoder.write((*filterTarget)(f), chunk)
	dst, f.out = f.out, nil
	return dst
}

// Close ends the stream: it appends what is left of it to dst and, when a
// colour is still set, what resets it.
func (f *Filter) Close(dst []byte) []byte {
	f.out = dst
	f.decoder.flush((*filterTarget)(f))
	dst, f.out = f.out, nil
	if f.styled {
		dst = append(dst, "\x1b[0m"...)
		f.styled = false
	}
	return dst
}

type filterTarget Filter

func (f *filterTarget) text(s string)   { f.out = append(f.out, s...) }
func (f *filterTarget) newline()        { f.out = append(f.out, '\n') }
func (f *filterTarget) carriageReturn() { f.out = append(f.out, '\r') }
func (f *filterTarget) backspace()      { f.out = append(f.out, '\b') }

func (f *filterTarget) control(params []byte, final byte) {
	if !f.Colour || final != 'm' && final != 'K' {
		return
	}
	reset := true
	for _, c := range params {
		if (c < '0' || c > '9') && c != ';' && c != ':' {
			return // a private sequence: CSI > 4 m sets a keyboard mode
		}
		reset = reset && c == '0'
	}
	if final == 'm' {
		f.styled = !reset
	}
	f.out = append(append(append(f.out, esc, '['), params...), final)
}

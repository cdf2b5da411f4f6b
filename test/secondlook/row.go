package secondlook

// Row is a defect and what became of it. One of Held, Said, Kept and Open is there.
type Row struct {
	// ID is a letter and a number; no two rows share one.
	ID string
	// Defect is what went wrong, in a sentence without its end.
	Defect string
	// Held names the tests that fail when it comes back: "PACKAGE TestName", with the
	// folder of the package, or "FILE: TEXT" for a script that has the text.
	Held []string
	// Said are sentences of documents: "FILE: SENTENCE", whatever its line breaks.
	Said []string
	// Kept says why it is no defect, or why it stays.
	Kept string
	// Open says what is still to be done about it.
	Open string
}

// Rows are all of them, in order.
func Rows() []Row {
	var all []Row
	for _, part := range [][]Row{pythonTool, notebooks, functions, embedding, faults} {
		all = append(all, part...)
	}
	return all
}

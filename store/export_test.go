package store

// Careless has a folder not wait for the disk.
func Careless(f *Folder) *Folder {
	f.careless = true
	return f
}

// Reads is how many records a folder has read.
func Reads(f *Folder) int64 { return f.known.reads.Load() }

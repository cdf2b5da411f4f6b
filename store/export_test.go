package store

// Careless has a folder not wait for the disk.
func Careless(f *Folder) *Folder {
	f.careless = true
	return f
}

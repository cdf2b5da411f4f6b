package artifact

// CloseFile closes the file under the writer.
func (w *Writer) CloseFile() error { return w.file.Close() }

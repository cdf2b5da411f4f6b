package walls

import (
	"errors"
	"fmt"
	"sync"

	"github.com/coppice-run/coppice/internal/file/temp"
)

// Folders are those that what is behind walls needs besides the ones that it was given. They
// are made when they are first asked for. The zero value is ready to use; any goroutine may
// call the methods.
type Folders struct {
	mu          sync.Mutex
	temp, boxes string // guarded by mu
}

// Temporary returns the folder for temporary files of what is confined.
func (f *Folders) Temporary() (string, error) { return f.make(&f.temp, "sessions") }

// Scratch returns the folder for what sandboxes keep.
func (f *Folders) Scratch() (string, error) { return f.make(&f.boxes, "boxes") }

func (f *Folders) make(dir *string, name string) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if *dir == "" {
		made, err := temp.Make(name)
		if err != nil {
			return "", err
		}
		*dir = made
	}
	return *dir, nil
}

// Remove removes them.
func (f *Folders) Remove() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	var err error
	for _, dir := range []*string{&f.temp, &f.boxes} {
		if *dir != "" {
			err = errors.Join(err, temp.Remove(*dir))
			*dir = ""
		}
	}
	if err != nil {
		return fmt.Errorf("remove the temporary files of sessions: %w", err)
	}
	return nil
}

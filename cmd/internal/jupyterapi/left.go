package jupyterapi

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"time"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/internal/file"
)

const (
	// maxLeft bounds what is read of an earlier server, in bytes, and leftFor is how long the
	// kernels of one are known whose sessions are not kept on disk.
	maxLeft = 16 << 20
	leftFor = 24 * time.Hour
	// leftEvery is how often at most what only counts is written down.
	leftEvery = time.Second
)

// left is what a server leaves to the next one: the names of its kernels. What is in them is the
// host's to keep.
type left struct {
	Kernels  []leftKernel   `json:"kernels"`
	Sessions []leftDocument `json:"sessions"`
}

type leftKernel struct {
	ID     string             `json:"id"`
	Spec   coppice.Kernelspec `json:"spec"`
	Cwd    string             `json:"cwd"`
	Count  int                `json:"count"`
	Active time.Time          `json:"active"`
}

type leftDocument struct {
	ID     string `json:"id"`
	Path   string `json:"path"`
	Name   string `json:"name"`
	Kind   string `json:"type"`
	Kernel string `json:"kernel"`
}

// readLeft reads what a server before has left; nothing where none has.
func readLeft(ctx context.Context, path string) (left, error) {
	var was left
	data, err := file.Read(ctx, path, maxLeft)
	if errors.Is(err, fs.ErrNotExist) {
		return was, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &was)
	}
	return was, err
}

// write writes it down.
func (l left) write(path string) error {
	data, err := json.Marshal(l)
	if err != nil {
		return err
	}
	return file.Write(path, data, file.WriteOptions{})
}

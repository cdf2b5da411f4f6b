package console

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/coppice-run/coppice/internal/file"
)

// MaxSource is more than any script that a person wrote, in bytes.
const MaxSource = 64 << 20

// ReadInput reads standard input to its end, MaxSource bytes of it at most.
func (c *Console) ReadInput() (string, error) {
	data, err := io.ReadAll(io.LimitReader(c.In, MaxSource+1))
	if err == nil && len(data) > MaxSource {
		err = fmt.Errorf("more than %d MiB", MaxSource>>20)
	}
	return string(data), err
}

// ReadText reads a text that the command line names, MaxSource bytes of it at most. A
// FIFO may stand for it, as a shell makes one for <(command): it is read like standard
// input, up to its end.
func ReadText(ctx context.Context, name string) ([]byte, error) {
	data, err := file.Read(ctx, name, MaxSource)
	if other, is := errors.AsType[*file.NotRegularError](err); !is || other.Kind != file.FIFO {
		return data, err
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	return file.ReadAll(ctx, f, MaxSource)
}

package environment

import (
	"errors"
	"fmt"

	"github.com/coppice-run/coppice/internal/home"
	"github.com/coppice-run/coppice/internal/pyenv"
)

// ErrOptions is matched by every error about options of this package.
var ErrOptions = errors.New("invalid options")

// Options says whose environment is meant. The fields are as in coppice.Options;
// the zero value of each is its default.
type Options struct {
	// Brand names the folder of the user: ~/.<brand>. "": coppice.
	Brand string
	// Home is the folder that holds ~/.<brand>. "": COPPICE_HOME from Env, else the
	// user's home directory.
	Home string
	// Python is the interpreter to use, by path or by a name on PATH. "": the first
	// that works, see [Find].
	Python string
	// Env is the environment of the host, unfiltered. nil: that of this process.
	Env []string
}

// resolve finds the folders. The error matches ErrOptions.
func (o Options) resolve() (home.Home, error) {
	place, err := home.Home{Brand: o.Brand, Path: o.Home, Env: o.Env}.Resolve()
	if err != nil {
		return place, fmt.Errorf("%w: %w", ErrOptions, err)
	}
	return place, nil
}

// Dir returns the folder <Home>/.<Brand>, where the environment, the settings and the
// tokens of the user are. It need not exist. The error matches [ErrOptions].
func Dir(o Options) (string, error) {
	place, err := o.resolve()
	if err != nil {
		return "", err
	}
	return place.Dir(), nil
}

// search is where a host looks for its interpreter: relative places start at the
// working directory of this process.
func search(o Options, place home.Home) pyenv.Options {
	return pyenv.Options{Python: o.Python, Home: place.Dir(), Env: place.Env}
}

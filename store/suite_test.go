package store_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/store"
	"github.com/coppice-run/coppice/store/storetest"
)

// TestSuite: a folder is what every store is.
func TestSuite(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(_ require.TestingT, dir string) storetest.Place {
		path := func(name string) string { return filepath.Join(dir, "hibernated", filepath.FromSlash(name)) }
		below := func(part, suffix string) func(require.TestingT) []string {
			return func(t require.TestingT) (all []string) {
				for _, f := range files(t, dir, part) {
					if strings.HasSuffix(f, suffix) {
						all = append(all, filepath.Join(part, f))
					}
				}
				return all
			}
		}
		return storetest.Place{
			Open: func(t require.TestingT, o storetest.Options) store.Store {
				return store.Careless(open(t, dir, func(f *store.FolderOptions) {
					f.MaxBytes = o.MaxBytes
					if o.AnotherKey {
						f.KeyFile = filepath.Join(dir, "another key")
					}
				}))
			},
			Records: below("records", ""),
			Buffers: below("blobs", "data"),
			Read: func(t require.TestingT, name string) []byte {
				data, err := os.ReadFile(path(name))
				require.NoError(t, err)
				return data
			},
			Write: func(t require.TestingT, name string, data []byte) {
				require.NoError(t, os.MkdirAll(filepath.Dir(path(name)), 0o700))
				require.NoError(t, os.WriteFile(path(name), data, 0o600))
			},
			Remove: func(t require.TestingT, name string) { require.NoError(t, os.Remove(path(name))) },
		}
	})
}

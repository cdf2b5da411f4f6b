// Package toolnew writes the files of a new tool: one that runs as it is, needs
// nothing but Python, and passes the validator once its environment is made.
//
// Any goroutine may call it.
package toolnew

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

//go:embed template
var template embed.FS

var kebab = regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z0-9]+)*$`)

// between is what stands between the words of a name.
var between = regexp.MustCompile(`[^a-z0-9]+`)

// ErrID is matched by the error of [Write] about an id that no tool can have.
var ErrID = errors.New("is not in kebab-case")

// Write writes a tool with the id into a folder of that name in dir, which is
// made if it does not exist, and returns the folder. A folder that exists is
// left alone, and an error that matches fs.ErrExist.
func Write(dir, id string) (string, error) {
	if !kebab.MatchString(id) || len(id) > 64 {
		as := "word-count"
		if better := strings.Trim(between.ReplaceAllString(strings.ToLower(id), "-"), "-"); kebab.MatchString(better) && len(better) <= 64 {
			as = better
		}
		return "", fmt.Errorf("the id %q %w: small letters, digits and single dashes, as in %s", id, ErrID, as)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("make a tool: %w", err)
	}
	folder := filepath.Join(dir, id)
	if err := os.Mkdir(folder, 0o700); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return "", fmt.Errorf("make a tool: %s is there already: %w", folder, err)
		}
		return "", fmt.Errorf("make a tool: %w", err)
	}
	title := strings.ToUpper(id[:1]) + strings.ReplaceAll(id[1:], "-", " ")
	fill := strings.NewReplacer("@ID@", id, "@NAME@", title)
	err := fs.WalkDir(template, "template", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := template.ReadFile(name)
		if err != nil {
			return err
		}
		rel := strings.TrimPrefix(name, "template/")
		to := filepath.Join(folder, filepath.FromSlash(path.Dir(rel)))
		if err := os.MkdirAll(to, 0o700); err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, path.Base(rel)), []byte(fill.Replace(string(text))), 0o600)
	})
	if err != nil {
		return "", fmt.Errorf("make a tool: %w", errors.Join(err, os.RemoveAll(folder)))
	}
	return folder, nil
}

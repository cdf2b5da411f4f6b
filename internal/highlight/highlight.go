package highlight

import (
	"archive/zip"
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/alecthomas/chroma/v2"
)

//go:embed chroma.zip
var packed string

// Where things are in chroma.zip.
const (
	languages = "lexers/"
	python    = languages + "python.xml"
	looks     = "styles/"
)

// files opens chroma.zip.
var files = sync.OnceValues(func() (*zip.Reader, error) {
	r, err := zip.NewReader(strings.NewReader(packed), int64(len(packed)))
	if err != nil {
		return nil, fmt.Errorf("open the languages that can be coloured: %w", err)
	}
	return r, nil
})

// Python returns the lexer of Python. It is read by the first call, in a millisecond, and
// compiled by the first text. Any goroutine may call Python and use what it returns. The
// error says that chroma.zip is damaged.
var Python = sync.OnceValues(func() (chroma.Lexer, error) {
	from, err := files()
	if err != nil {
		return nil, err
	}
	l, err := chroma.NewXMLLexer(from, python)
	if err != nil {
		return nil, fmt.Errorf("read how Python is coloured: %w", err)
	}
	return chroma.NewLexerRegistry().Register(l), nil
})

// all reads every language: 20 ms.
var all = sync.OnceValues(func() (*chroma.LexerRegistry, error) {
	from, err := files()
	if err != nil {
		return nil, err
	}
	registry := chroma.NewLexerRegistry()
	var failed []error
	for _, f := range from.File {
		if !strings.HasPrefix(f.Name, languages) {
			continue
		}
		l, err := chroma.NewXMLLexer(from, f.Name)
		if err != nil {
			failed = append(failed, fmt.Errorf("read %s: %w", f.Name, err))
			continue
		}
		registry.Register(l)
	}
	return registry, errors.Join(failed...)
})

// instead are languages that are coloured in place of others, which chroma.zip has not.
var instead = map[string]string{"erb": "html", "phtml": "html", "svelte": "html", "yaml+jinja": "yaml"}

// Lexer returns the lexer of a language, which is given by its name, by another name of
// it, or by the extension of its files; nil for one that is unknown. The first call for
// anything but Python reads all languages. Any goroutine may call it and use what it returns.
func Lexer(language string) chroma.Lexer {
	language = strings.ToLower(language)
	switch language {
	case "python", "python3", "py":
		if l, err := Python(); err == nil {
			return l
		}
		return nil
	}
	registry, err := all()
	if err != nil {
		return nil
	}
	return registry.Get(cmp.Or(instead[language], language))
}

// Light and Dark are the colours of code on light and on dark ground, those of GitHub. Any
// goroutine may call them. The error says that chroma.zip is damaged.
var (
	Light = sync.OnceValues(func() (*chroma.Style, error) { return style("github") })
	Dark  = sync.OnceValues(func() (*chroma.Style, error) { return style("github-dark") })
)

func style(name string) (*chroma.Style, error) {
	from, err := files()
	if err != nil {
		return nil, err
	}
	f, err := from.Open(looks + name + ".xml")
	if err != nil {
		return nil, fmt.Errorf("open the colours of code: %w", err)
	}
	defer func() { _ = f.Close() }()
	s, err := chroma.NewXMLStyle(f)
	if err != nil {
		return nil, fmt.Errorf("read the colours of code: %w", err)
	}
	return s, nil
}

package cli

import (
	"bytes"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/cli/browser"

	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/internal/file"
)

// signInPage sends a browser to the live view with the token, which stands behind the
// # of the address: that part is sent to no server. A command line would show the
// address to all users of the machine, so that a browser is given this file instead.
var signInPage = template.Must(template.New("").Parse(`<!doctype html>
<meta charset="utf-8">
<meta name="referrer" content="no-referrer">
<title>Coppice</title>
<meta http-equiv="refresh" content="0;url={{.}}">
<p><a href="{{.}}">Open the live view</a></p>
`))

// signInLink opens the live view and signs in.
func signInLink(r client.Record) string { return r.URL + "/#token=" + r.Token }

// signInPath is the page that signs in, by the server's record.
func signInPath(record string) string {
	return filepath.Join(filepath.Dir(record), "run", "serve.html")
}

// writeSignIn writes the page that signs in, for this user alone, into the folder run
// beside the server's record. A server that was killed leaves it with a token that
// opens nothing any more, and the next one replaces it. remove takes it away.
func writeSignIn(record string, r client.Record) (path string, remove func() error, err error) {
	remove = func() error { return nil }
	path = signInPath(record)
	var page bytes.Buffer
	if err := signInPage.Execute(&page, signInLink(r)); err != nil {
		return "", remove, fmt.Errorf("make the page that signs in: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", remove, fmt.Errorf("make a folder for the page that signs in: %w", err)
	}
	if err := file.Write(path, page.Bytes(), file.WriteOptions{}); err != nil {
		return "", remove, fmt.Errorf("write the page that signs in: %w", err)
	}
	return path, func() error {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove the page that signs in: %w", err)
		}
		return nil
	}, nil
}

// openBrowser shows a page. What the browser's own program says goes to standard error.
func (a *app) openBrowser(path string) error {
	browser.Stdout, browser.Stderr = a.Err, a.Err
	if err := browser.OpenFile(path); err != nil {
		return fmt.Errorf("open a browser: %w; open %s in one", err, path)
	}
	return nil
}

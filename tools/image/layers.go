package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
)

// dropped are parts of Debian's packages that nothing here uses: documents but their
// licences, translations, conversions between character sets, what packages are installed
// with, and what comes along with certificates only to install them.
var dropped = []string{
	"boot", "usr/share/man", "usr/share/info", "usr/share/locale", "usr/share/i18n", "usr/share/lintian", "usr/share/bug",
	"usr/share/perl5", "usr/share/debconf", "usr/share/applications", "usr/share/pixmaps", "usr/share/menu",
	"usr/share/zoneinfo/right", "usr/share/zoneinfo/posix", "usr/share/gdb", "usr/share/gcc",
	"etc/cron.daily", "etc/kernel", "etc/systemd", "etc/dpkg", "etc/apt", "etc/default", "etc/init.d", "etc/apparmor.d", "etc/debconf.conf", "etc/ssl/openssl.cnf",
	"usr/bin/openssl", "usr/bin/debconf*", "usr/sbin/dpkg-*", "usr/bin/dpkg*", "usr/bin/tini-static", "usr/sbin/ldconfig*", "usr/bin/c_rehash",
	"usr/lib/*/gconv", "usr/lib/*/libdb-*", "usr/lib/python3*/pydoc_data", "usr/lib/python3*/lib2to3", "usr/lib/python3*/turtledemo",
	"usr/lib/python3*/idlelib", "usr/lib/python3*/lib-dynload/_dbm*", "usr/lib/systemd",
	"var/lib/dpkg/[!s]*", "var/lib/dpkg/status", "var/lib/apt", "var/cache/*", "var/log/*", "var/lib/systemd",
}

// gone are packages that all of dropped takes away.
var gone = []string{"debconf", "openssl", "libdb5.3t64"}

// keep reports whether a path of Debian's packages is in the image.
func keep(name string) bool {
	for at := name; at != "."; at = path.Dir(at) {
		for _, pattern := range dropped {
			if ok, err := path.Match(pattern, at); err != nil || ok {
				return false
			}
		}
	}
	if strings.HasPrefix(name, "usr/share/doc/") {
		return strings.Count(name, "/") == 3 || path.Base(name) == "copyright"
	}
	return !strings.HasPrefix(name, "var/lib/dpkg/status.d/") || !slices.Contains(gone, path.Base(name))
}

// system is the layer of Debian's packages, and the version of its Python: 3.13.
func (b build) system(archive, compiled string) (t *tree, python string, err error) {
	t = b.tree()
	if err := t.archive(archive, keep); err != nil {
		return nil, "", err
	}
	for name := range t.entries { // folders of documents of which nothing is left
		if strings.HasPrefix(name, "usr/share/doc/") && strings.Count(name, "/") == 3 {
			if _, there := t.entries[name+"/copyright"]; !there && t.entries[name].data == nil && t.entries[name].to == "" {
				delete(t.entries, name)
			}
		}
		if rest, found := strings.CutPrefix(name, "usr/bin/python3."); found && !strings.ContainsAny(rest, "-/") {
			python = "3." + rest
		}
	}
	if python == "" {
		return nil, "", errors.New("Debian's packages have no Python")
	}
	if err := t.certificates(); err != nil {
		return nil, "", err
	}
	t.link("usr/bin/sh", "bash")
	t.file("etc/passwd", 0o644, fmt.Appendf(nil, "root:x:0:0:root:/root:/usr/sbin/nologin\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\ncoppice:x:%d:%d:Coppice:%s:/bin/bash\n", user, user, home))
	t.file("etc/group", 0o644, fmt.Appendf(nil, "root:x:0:\nnogroup:x:65534:\ncoppice:x:%d:\n", user))
	t.file("etc/nsswitch.conf", 0o644, []byte("passwd: files\ngroup: files\nhosts: files dns\n"))
	t.folder("tmp", 0o1777)
	t.folder("var/tmp", 0o1777)
	for _, own := range []string{home, work} {
		t.folder(own, 0o700)
		t.owned(own)
	}
	return t, python, t.bytecode(compiled, "cpython-"+strings.ReplaceAll(python, ".", ""))
}

// certificates puts those that Mozilla trusts into the one file that programs read, as the
// set-up of their package does.
func (t *tree) certificates() error {
	var all []byte
	for _, name := range slices.Sorted(maps.Keys(t.entries)) {
		if strings.HasPrefix(name, "usr/share/ca-certificates/mozilla/") && strings.HasSuffix(name, ".crt") {
			all = append(all, t.entries[name].data...)
			delete(t.entries, name)
		}
	}
	if len(all) == 0 {
		return errors.New("Debian's packages have no certificates")
	}
	t.file("etc/ssl/certs/ca-certificates.crt", 0o644, all)
	return nil
}

// packages is the layer of the Python packages: a virtual environment of Debian's Python.
func (b build) packages(from, compiled, python string) (*tree, error) {
	t := b.tree()
	site := venv + "/lib/python" + python + "/site-packages"
	skip := func(name string) bool {
		switch first, _, _ := strings.Cut(name, "/"); first {
		case "bin", "share", "etc", ".lock": // share and etc belong elsewhere; programs name another Python
			return true
		}
		return path.Base(name) == "__pycache__"
	}
	if err := t.copied(from, site, skip); err != nil {
		return nil, err
	}
	for _, data := range []string{"share/jupyter", "etc/jupyter"} {
		if _, err := os.Stat(path.Join(from, data)); err == nil {
			if err := t.copied(path.Join(from, data), venv+"/"+data, func(string) bool { return false }); err != nil {
				return nil, err
			}
		}
	}
	t.file(venv+"/pyvenv.cfg", 0o644, []byte("home = /usr/bin\ninclude-system-site-packages = false\nversion = "+python+"\n"))
	for _, name := range []string{"python", "python3", "python" + python} {
		t.link(venv+"/bin/"+name, "/usr/bin/python"+python)
	}
	return t, t.bytecode(compiled, "cpython-"+strings.ReplaceAll(python, ".", ""))
}

// program is the layer of coppice.
func (b build) program(from string) (*tree, error) {
	data, err := os.ReadFile(from)
	if err != nil {
		return nil, err
	}
	t := b.tree()
	t.file(where, 0o755, data)
	return t, nil
}

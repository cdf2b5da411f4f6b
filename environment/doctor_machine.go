package environment

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/coppice-run/coppice/internal/cgroup"
	"github.com/coppice-run/coppice/internal/home"
	"github.com/coppice-run/coppice/internal/machine"
	"github.com/coppice-run/coppice/internal/opportunity"
	"github.com/coppice-run/coppice/internal/sharedgateway"
	"github.com/coppice-run/coppice/internal/shell"
)

// cleanWait bounds the wait for others that change the shared gateways, and the end of what
// is left.
var cleanWait = opportunity.Starting(10*time.Second, 2*time.Minute)

// looseMost is how many files that others can read are named.
const looseMost = 5

func (x *examination) sharedDir() string { return sharedgateway.DirIn(x.home.Dir()) }

// permissions looks whether others can read what we keep.
func (x *examination) permissions() {
	own := filepath.Join("agent", "modules")
	// What code and tools write has the modes that they give it, in folders that only the user
	// can enter; what Python keeps of the code of tools is no secret.
	loose, err := machine.FindLoose(x.home.Dir(), []string{"python-env", "python-env.tmp", own, "workspaces/", "tool-runs/", "cache"}, 0o077, looseMost+1)
	if err != nil {
		x.find(checkPermissions, FindingFailed, "", "%v", err)
		return
	}
	for i, l := range loose {
		if i == looseMost {
			x.find(checkPermissions, FindingFailed, "chmod -R go= "+shell.Quote(x.home.Dir()), "there are more in %s", x.home.Dir())
			break
		}
		mend := "chmod go= " + shell.Quote(l.Path)
		if strings.HasPrefix(l.Why, "belongs") {
			mend = "chown " + strconv.Itoa(os.Getuid()) + " " + shell.Quote(l.Path) + " (as that user or root)"
		}
		x.find(checkPermissions, FindingFailed, mend, "%s %s: there may be tokens and what sessions showed in it", l.Path, l.Why)
	}
	// Modules may be read by others; whoever can change them runs code as this user.
	modules, err := machine.FindLoose(filepath.Join(x.home.Dir(), own), nil, 0o022, looseMost)
	if err != nil {
		x.find(checkPermissions, FindingFailed, "", "%v", err)
	}
	for _, l := range modules {
		x.find(checkPermissions, FindingFailed, "chmod go-w "+shell.Quote(l.Path), "%s %s: every session runs what is in it", l.Path, l.Why)
	}
	if len(loose)+len(modules) == 0 && err == nil {
		x.ok(checkPermissions, "only you can read what is in %s", x.home.Dir())
	}
}

// limits looks at what the machine allows.
func (x *examination) limits() {
	defer x.groups()
	l := machine.Look(home.TempDir(x.home.Env))
	found := limitFindings(l)
	x.found = append(x.found, found...)
	if len(found) == 0 {
		var have []string
		for _, v := range []struct {
			n    uint64
			text string
		}{
			{l.OpenFiles, fmt.Sprintf("%d open files", l.OpenFiles)},
			{l.PIDs, fmt.Sprintf("%d of %d processes", l.PIDsUsed, l.PIDs)},
			{l.Memory, fmt.Sprintf("%s of %s memory free", machine.Size(l.Available), machine.Size(l.Memory))},
			{l.Temp, machine.Size(l.Temp) + " for temporary files"},
		} {
			if v.n > 0 {
				have = append(have, v.text)
			}
		}
		if have == nil {
			x.skip(checkLimits, "this system does not tell them")
			return
		}
		x.ok(checkLimits, "%s", strings.Join(have, ", "))
	}
}

// groups says how sessions are kept to their limits.
func (x *examination) groups() {
	base, have, lacking, err := cgroup.Check(cgroup.Options{Want: []string{cgroup.Memory, cgroup.PIDs, cgroup.CPU}, Whole: true}) // as for sessions
	switch {
	case err != nil:
		x.ok(checkLimits, "limits of sessions hold for each of their processes, not for all together: %v", err)
	case lacking != "":
		x.ok(checkLimits, "sessions with limits get control groups in %s (%s); %s", base, strings.Join(have, ", "), lacking)
	default:
		x.ok(checkLimits, "sessions with limits get control groups in %s (%s)", base, strings.Join(have, ", "))
	}
}

// What a session needs at least, and what lets a host work well: a kernel of the
// gateway backend costs its gateway 18 descriptors and takes 53 MiB.
const (
	filesLeast, filesGood   = 512, 4096
	pidsLeast, pidsGood     = 64, 512
	memoryLeast, memoryGood = 128 << 20, 512 << 20
	tempLeast, tempGood     = 64 << 20, 512 << 20
)

// limitFindings are the limits that are too low.
func limitFindings(l machine.Limits) []Finding {
	var found []Finding
	judge := func(known bool, have, least, good uint64, detail, mend string) {
		state := FindingWarning
		switch {
		case !known || have >= good:
			return
		case have < least:
			state = FindingFailed
		}
		found = append(found, Finding{Check: checkLimits, State: state, Detail: detail, Mend: mend})
	}
	judge(l.OpenFiles > 0, l.OpenFiles, filesLeast, filesGood,
		fmt.Sprintf("a process may have only %d files open: kernels fail with EMFILE", l.OpenFiles),
		"ulimit -n 65536 before the program is started (LimitNOFILE= of a service)")
	judge(l.Processes > 0, l.Processes, pidsLeast, pidsGood,
		fmt.Sprintf("this user may have only %d processes", l.Processes),
		"ulimit -u 4096 before the program is started (LimitNPROC= of a service)")
	judge(l.PIDs > 0, l.PIDs-min(l.PIDs, l.PIDsUsed), pidsLeast, pidsGood,
		fmt.Sprintf("%d of %d processes are there already (%s)", l.PIDsUsed, l.PIDs, l.PIDsFrom),
		"end some, or raise "+l.PIDsFrom)
	judge(l.Memory > 0, l.Available, memoryLeast, memoryGood,
		fmt.Sprintf("only %s of %s memory is free (%s)", machine.Size(l.Available), machine.Size(l.Memory), l.MemoryFrom),
		"end other programs, or lower MaxSessions")
	judge(l.Temp > 0, l.Temp, tempLeast, tempGood,
		fmt.Sprintf("only %s is free for temporary files in %s", machine.Size(l.Temp), l.TempDir),
		"make room there, or export TMPDIR=<another folder>")
	return found
}

func itoa(n int) string { return strconv.Itoa(n) }

// count writes a number with its noun.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

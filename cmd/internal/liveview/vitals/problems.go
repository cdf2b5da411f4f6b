package vitals

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/internal/machine"
	"github.com/coppice-run/coppice/messages"
)

// From when on something is a problem.
const (
	most     = 100              // problems that are told
	pressed  = .3               // pressure of the machine
	near     = .9               // of a limit that is used
	hungry   = .4               // of the memory that one session uses
	queued   = 10               // calls that wait for one session
	lasting  = 10 * time.Minute // that a call has run
	restarts = 3                // of a server that is not a session
)

// situation is what problems are found in.
type situation struct {
	now     time.Time
	seen    look
	marks   []client.Mark
	refused refusals
}

// ranks orders the levels.
var ranks = map[client.Level]int{client.LevelBad: 0, client.LevelAsks: 1, client.LevelShaky: 2}

// problems lists what a person should look at, the worst first, and how many more there
// are than a person reads.
func problems(s situation) (list []client.Problem, more int) {
	list = []client.Problem{}
	list = append(list, s.ofMarks()...)
	list = append(list, s.ofServers(s.seen.tree)...)
	list = append(list, s.ofSessions()...)
	list = append(list, s.ofLimits()...)
	return worstFirst(list)
}

// worstFirst orders problems and leaves out those that are more than a person reads.
func worstFirst(list []client.Problem) (first []client.Problem, more int) {
	slices.SortStableFunc(list, func(a, b client.Problem) int {
		// Of questions the one that expires first comes first, of others the newest.
		byTime := b.Since.Compare(a.Since)
		if a.Level == client.LevelAsks && b.Level == client.LevelAsks {
			byTime = cmp.Compare(deadline(a), deadline(b))
		}
		return cmp.Or(cmp.Compare(ranks[a.Level], ranks[b.Level]), byTime, strings.Compare(a.Key.ID(), b.Key.ID()))
	})
	if len(list) > most {
		list, more = list[:most], len(list)-most
	}
	return list, more
}

// deadline orders questions: those that never expire come last.
func deadline(p client.Problem) int64 {
	if p.Until.IsZero() {
		return 1<<63 - 1
	}
	return p.Until.UnixNano()
}

// ofMarks are the problems of sessions that are marked.
func (s situation) ofMarks() []client.Problem {
	var list []client.Problem
	for _, m := range s.marks {
		p := client.Problem{Level: m.Level, Key: m.Key, Since: m.Since}
		switch m.Level {
		case client.LevelBad:
			p.Kind, p.What = "refused", "It refuses calls: its kernel failed for good"+because(m.Why)+"."
			p.Do = "Reset it for an empty kernel, or stop it."
		case client.LevelAsks:
			p.Kind, p.Until, p.What = "asks", m.Question.Until, "Its code waits for a person: "+quoted(m.Question.Prompt)+"."
			p.Do = "Answer on its page, or interrupt it."
		case client.LevelShaky:
			kind, why, _ := strings.Cut(m.Why, ": ")
			p.Kind = kind
			switch kind {
			case "hung":
				p.What, p.Do = "Its kernel did not answer and was given up"+because(why)+"; its variables are lost.", "Make the call again; look for code that blocks without end."
			case "lost":
				p.Kind, p.What, p.Do = "died", "A call was lost"+because(strings.TrimPrefix(why, "a call was lost: "))+".", "See on its page what became of its state; a call that goes well clears this."
			default:
				p.What, p.Do = "Its kernel died"+because(why)+"; its variables are lost.", "Make the calls again that made them; a call that goes well clears this."
			}
		default:
			continue
		}
		list = append(list, p)
	}
	return list
}

// ofServers are the problems of what sessions stand on.
func (s situation) ofServers(n messages.Node) []client.Problem {
	var list []client.Problem
	for _, left := range n.Abandoned {
		list = append(list, client.Problem{
			Level: client.LevelBad, Kind: "hung", What: fmt.Sprintf("%s did not end in time%s.", left.Path, because(left.Exit.Reason)),
			Do: fmt.Sprintf("It keeps its place until it ends; look at process %d.", left.PID),
		})
	}
	if n.Kind == "server" {
		why := ""
		if n.LastExit != nil {
			why = firstLine(n.LastExit.Reason)
		}
		switch {
		case n.State == messages.ChildFailed || n.State == messages.ChildSuspended || n.State == messages.ChildRestarting:
			list = append(list, client.Problem{Level: client.LevelBad, Kind: "server", Since: n.Since, What: fmt.Sprintf("%s is %s%s.", n.Name, n.State, because(why)), Do: "No new session can start before it is up; coppice doctor says what is missing."})
		case n.Restarts >= restarts:
			list = append(list, client.Problem{Level: client.LevelShaky, Kind: "server", Since: n.StartedAt, What: fmt.Sprintf("%s was restarted %d times%s.", n.Name, n.Restarts, because(why)), Do: "Run coppice doctor; look at its reason in the tree."})
		}
	}
	for _, c := range n.Children {
		list = append(list, s.ofServers(c)...)
	}
	return list
}

// ofSessions are the problems that the numbers of sessions show.
func (s situation) ofSessions() []client.Problem {
	asks := map[messages.SessionKey]bool{}
	for _, m := range s.marks {
		asks[m.Key] = m.Level == client.LevelAsks
	}
	var list []client.Problem
	for _, one := range s.seen.sessions {
		p := client.Problem{Level: client.LevelShaky, Key: keyOf(one), Since: one.Since}
		if one.Queue >= queued {
			p.Kind, p.What, p.Do = "queue", fmt.Sprintf("%d calls wait for it.", one.Queue), "One session runs one call at a time: spread the calls over forks or other sessions."
			list = append(list, p)
		}
		if one.State == messages.ChildBusy && s.now.Sub(one.Since) >= lasting && !asks[p.Key] {
			p.Kind, p.What, p.Do = "long", fmt.Sprintf("A call runs for %.0f minutes.", s.now.Sub(one.Since).Minutes()), "Look at its output; interrupt it if it does not come on."
			list = append(list, p)
		}
		if limit := s.seen.limits.Memory; limit > 0 && float64(one.RSS) >= hungry*float64(limit) {
			p.Kind, p.What = "limit", fmt.Sprintf("It uses %s, %d %% of the memory.", machine.Size(uint64(one.RSS)), 100*one.RSS/limit)
			p.Do = "Free what it no longer needs, or reset it."
			list = append(list, p)
		}
	}
	return list
}

// ofLimits are the problems of the server as a whole.
func (s situation) ofLimits() []client.Problem {
	var list []client.Problem
	add := func(level client.Level, kind, what, do string) {
		list = append(list, client.Problem{Level: level, Kind: kind, What: what, Do: do})
	}
	limits, count, rss := s.seen.limits, len(s.seen.sessions), int64(0)
	for _, one := range s.seen.sessions {
		rss += one.RSS
	}
	if limits.Sessions > 0 && float64(count) >= near*float64(limits.Sessions) {
		add(client.LevelShaky, "limit", fmt.Sprintf("%d of %d places for sessions are taken.", count, limits.Sessions), "A new one evicts the one that is idle for longest: pin what has to stay, or raise --max-sessions.")
	}
	if limits.Memory > 0 && float64(rss) >= near*float64(limits.Memory) {
		add(client.LevelBad, "limit", fmt.Sprintf("Sessions use %d %% of the memory.", 100*rss/limits.Memory), "Stop what is not needed: sort the sessions by memory.")
	}
	if b := s.seen.tree.Busy; b != nil && b.Pressure >= pressed {
		add(client.LevelShaky, "machine", fmt.Sprintf("The machine is busy: processes wait for a processor %.0f %% of the time.", 100*b.Pressure), "Calls take longer, and ends are put off: sort the sessions by processor.")
	}
	if s.refused.count > 0 {
		add(client.LevelBad, "refused", fmt.Sprintf("%d calls were refused since %s%s.", s.refused.count, s.refused.began.Format(time.TimeOnly), because(s.refused.reason)), "Let callers wait and try again, or raise --max-sessions.")
	}
	return list
}

// because is the first line of a reason, as the end of a sentence.
func because(why string) string {
	why = strings.TrimRight(firstLine(why), ".:; ")
	if why == "" {
		return ""
	}
	return " (" + why + ")"
}

func quoted(prompt string) string {
	if prompt = strings.TrimRight(firstLine(prompt), " :"); prompt == "" {
		return "input() without a prompt"
	}
	return "“" + prompt + "”"
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}

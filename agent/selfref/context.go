package selfref

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"html"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Experience is one thing that a conversation remembers.
type Experience struct {
	ID   string `json:"id"`
	Text string `json:"text"`
}

// Summary is what a compaction puts in place of the conversation.
type Summary struct {
	Goal          string   `json:"goal"`
	Instruction   string   `json:"instruction"`
	Discoveries   []string `json:"discoveries"`
	Completed     []string `json:"completed"`
	CurrentStatus string   `json:"current_status"`
	LikelyNext    []string `json:"likely_next_work"`
	Relevant      []string `json:"relevant_files_directories"`
}

const openSummary, closeSummary = "<context_summary>", "</context_summary>"

// parts is a conversation taken apart: the system message without what is
// remembered, that, and the other messages. The section with what is remembered
// stands between before and after, which are the host's text byte for byte.
type parts struct {
	system        *Message // nil when there is none
	before, after string
	found         bool // the section was there
	experiences   []Experience
	rest          []Message
}

// section is what the pack has written into a system message, with the empty line
// before it. Its check is that of the lines in it: text that merely looks like a
// section is not one.
var (
	section        = regexp.MustCompile(`(?:\n\n)?<experience by="runtime\.selfref" check="([0-9a-f]{16})">\n((?:- \[exp_\d+\] [^\n]*\n)+)</experience>`)
	experienceLine = regexp.MustCompile(`^- \[(exp_\d+)\] (.*)$`)
)

func checkOf(lines string) string {
	sum := sha256.Sum256([]byte(lines))
	return hex.EncodeToString(sum[:8])
}

// split takes a conversation apart.
func split(list []Message) parts {
	p := parts{rest: list}
	if len(list) == 0 || list[0].Role != "system" {
		return p
	}
	p.system, p.rest, p.before = &list[0], list[1:], list[0].Content
	for _, at := range slices.Backward(section.FindAllStringSubmatchIndex(p.before, -1)) {
		lines := p.before[at[4]:at[5]]
		if p.before[at[2]:at[3]] != checkOf(lines) {
			continue
		}
		for line := range strings.Lines(lines) {
			m := experienceLine.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
			p.experiences = append(p.experiences, Experience{ID: m[1], Text: html.UnescapeString(m[2])})
		}
		p.found, p.before, p.after = true, p.before[:at[0]], p.before[at[1]:]
		break
	}
	return p
}

// join puts a conversation together again.
func (p parts) join() []Message {
	if !p.found && len(p.experiences) == 0 {
		if p.system == nil {
			return slices.Clone(p.rest)
		}
		return append([]Message{*p.system}, p.rest...)
	}
	system := Message{Role: "system"}
	if p.system != nil {
		system = *p.system
	}
	system.Content = p.before + p.section() + p.after
	if system.Content == "" {
		return slices.Clone(p.rest) // all of it was the pack's
	}
	return append([]Message{system}, p.rest...)
}

// section is the text for what is remembered.
func (p parts) section() string {
	if len(p.experiences) == 0 {
		return ""
	}
	var lines, b strings.Builder
	for _, e := range p.experiences {
		fmt.Fprintf(&lines, "- [%s] %s\n", e.ID, html.EscapeString(e.Text))
	}
	if p.before != "" {
		b.WriteString("\n\n")
	}
	fmt.Fprintf(&b, "<experience by=\"runtime.selfref\" check=\"%s\">\n%s</experience>", checkOf(lines.String()), lines.String())
	return b.String()
}

// remember adds a text, unless it is there.
func (p *parts) remember(text string) Experience {
	text = strings.Join(strings.Fields(text), " ")
	last := 0
	for _, e := range p.experiences {
		if e.Text == text {
			return e
		}
		if n, err := strconv.Atoi(strings.TrimPrefix(e.ID, "exp_")); err == nil {
			last = max(last, n)
		}
	}
	e := Experience{ID: fmt.Sprintf("exp_%d", last+1), Text: text}
	p.experiences = append(slices.Clone(p.experiences), e)
	return e
}

// forget removes one. False: none has that id.
func (p *parts) forget(id string) bool {
	n := len(p.experiences)
	p.experiences = slices.DeleteFunc(slices.Clone(p.experiences), func(e Experience) bool { return e.ID == id })
	return len(p.experiences) < n
}

// sections are those of a summary, in order.
var sections = []string{"Goal", "Instruction", "Discoveries", "Completed", "Current Status", "Likely Next Work", "Relevant Files/Directories"}

// render is the summary as the text of a message.
func (s Summary) render() string {
	var b strings.Builder
	b.WriteString(openSummary + "\n")
	for i, body := range []string{s.Goal, s.Instruction, bullets(s.Discoveries), bullets(s.Completed), s.CurrentStatus, bullets(s.LikelyNext), bullets(s.Relevant)} {
		fmt.Fprintf(&b, "## %s\n%s\n", sections[i], guard(body))
	}
	b.WriteString(closeSummary)
	return b.String()
}

// Lines that look like the head of a section, and such that guard has made of one: also of one
// that was that before.
var (
	heads   = regexp.MustCompile(`(?m)^\\*## `)
	guarded = regexp.MustCompile(`(?m)^\\(\\*## )`)
)

// guard keeps a text from looking like a section, or the end, of a summary.
func guard(text string) string {
	return heads.ReplaceAllStringFunc(html.EscapeString(text), func(head string) string { return `\` + head })
}

func unguard(text string) string {
	return html.UnescapeString(guarded.ReplaceAllString(text, "$1"))
}

func bullets(list []string) string {
	if len(list) == 0 {
		return "(none)"
	}
	return "- " + strings.Join(list, "\n- ")
}

// parseSummary is the inverse of render. False: the text holds no summary.
func parseSummary(text string) (Summary, bool) {
	start := strings.Index(text, openSummary)
	end := strings.LastIndex(text, closeSummary)
	if start < 0 || end < start {
		return Summary{}, false
	}
	body := "\n" + strings.TrimLeft(text[start+len(openSummary):end], "\n")
	bodies := make([]string, len(sections))
	for i, name := range sections {
		head := "\n## " + name + "\n"
		at := strings.Index(body, head)
		if at < 0 {
			return Summary{}, false
		}
		rest := body[at+len(head)-1:]
		if next := strings.Index(rest, "\n## "); next >= 0 {
			bodies[i], body = rest[:next], rest[next:]
		} else {
			bodies[i], body = rest, ""
		}
		bodies[i] = unguard(strings.Trim(bodies[i], "\n"))
	}
	return Summary{
		Goal: bodies[0], Instruction: bodies[1], Discoveries: unbullet(bodies[2]), Completed: unbullet(bodies[3]),
		CurrentStatus: bodies[4], LikelyNext: unbullet(bodies[5]), Relevant: unbullet(bodies[6]),
	}, true
}

func unbullet(text string) []string {
	list := []string{}
	if text == "(none)" {
		return list
	}
	for line := range strings.SplitSeq(text, "\n") {
		list = append(list, strings.TrimPrefix(line, "- "))
	}
	return list
}

// lastSummary is the summary that a conversation goes on from.
func lastSummary(list []Message) *Summary {
	for _, m := range slices.Backward(list) {
		if m.Role != "assistant" {
			continue
		}
		if s, ok := parseSummary(m.Content); ok {
			return &s
		}
	}
	return nil
}

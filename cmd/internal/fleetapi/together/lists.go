package together

import (
	"encoding/json"

	"github.com/coppice-run/coppice/messages"
)

// Entries reads the entries of a list, and notes at which node they are: also where they say so
// themselves, unless it is trusted that they know.
func Entries(data []byte, member, node string, trusted bool) []json.RawMessage {
	var answer map[string]json.RawMessage
	var entries []map[string]json.RawMessage
	if json.Unmarshal(data, &answer) != nil || json.Unmarshal(answer[member], &entries) != nil {
		return nil
	}
	name, err := json.Marshal(node)
	list := make([]json.RawMessage, 0, len(entries))
	for _, e := range entries {
		if (e["node"] == nil || !trusted) && err == nil {
			e["node"] = name
		}
		if text, err := json.Marshal(e); err == nil {
			list = append(list, text)
		}
	}
	return list
}

// asleep is the state of a session in a list that has no kernel and is kept on disk.
const asleep = "hibernated"

// Once is a list in which each session and checkpoint that is kept where all nodes have it stands
// once: each node has listed it, and it is at none of them. One that has a kernel meanwhile is there.
func Once(all []json.RawMessage) []json.RawMessage {
	type session struct{ Session, Cwd, Workspace, Kernel, State, Name string }
	read := func(text json.RawMessage) (key messages.SessionKey, kept bool) {
		var s session
		if json.Unmarshal(text, &s) != nil || s.Session == "" || s.Workspace != "" {
			return messages.SessionKey{}, false
		}
		if s.Name != "" { // a checkpoint
			return messages.SessionKey{Cwd: s.Name}, true
		}
		return messages.SessionKey{Session: s.Session, Cwd: s.Cwd, Kernel: s.Kernel}, s.State == asleep
	}
	seen := map[messages.SessionKey]bool{}
	for _, text := range all {
		if key, kept := read(text); !kept {
			seen[key] = true
		}
	}
	list := make([]json.RawMessage, 0, len(all))
	for _, text := range all {
		key, kept := read(text)
		if !kept {
			list = append(list, text)
			continue
		}
		var entry map[string]json.RawMessage
		if seen[key] || json.Unmarshal(text, &entry) != nil {
			continue
		}
		seen[key] = true
		delete(entry, "node")
		if text, err := json.Marshal(entry); err == nil {
			list = append(list, text)
		}
	}
	return list
}

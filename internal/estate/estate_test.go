package estate_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/coppice-run/coppice/internal/estate"
	"github.com/coppice-run/coppice/internal/process"
	"github.com/coppice-run/coppice/messages"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var seal = []byte("a key of a seal of 24 b.")

func note() estate.Note {
	return estate.Note{
		Version: estate.Version, Key: messages.SessionKey{Session: "work", Cwd: "/tmp"}, Owners: []string{"a"}, Process: process.Identity{PID: 7, Start: "9"},
		Mark: "mark", Log: "x.log", Seal: seal,
	}
}

func TestNotesAreReadAsTheyWere(t *testing.T) {
	data, err := note().Encode()
	require.NoError(t, err)
	again, err := estate.ParseNote(data)
	require.NoError(t, err)
	require.Equal(t, note(), again)
}

// TestNotesThatAreRefused: each says why.
func TestNotesThatAreRefused(t *testing.T) {
	for why, change := range map[string]func(*estate.Note){
		"of version 9":   func(n *estate.Note) { n.Version = 9 },
		"no session":     func(n *estate.Note) { n.Key.Cwd = "tmp" },
		"can be kept":    func(n *estate.Note) { n.Key.Workspace = "w" },
		"no process":     func(n *estate.Note) { n.Process.PID = 1 },
		"no mark":        func(n *estate.Note) { n.Mark = "" },
		"names no log":   func(n *estate.Note) { n.Log = "../x.log" },
		"it names 65 ow": func(n *estate.Note) { n.Owners = make([]string, 65) },
	} {
		n := note()
		change(&n)
		data, err := json.Marshal(n)
		require.NoError(t, err)
		_, err = estate.ParseNote(data)
		var refused *estate.RefusedError
		require.ErrorAs(t, err, &refused, why)
		require.ErrorContains(t, err, why)
	}
	for _, data := range []string{"", "{", "[]", `{"version":1} {}`, string(make([]byte, estate.MaxNote+1))} {
		_, err := estate.ParseNote([]byte(data))
		var refused *estate.RefusedError
		require.ErrorAs(t, err, &refused)
	}
}

// write writes the log of a call that is in its second cell, and returns its file.
func write(t testing.TB, dir string) (*estate.Log, string) {
	t.Helper()
	l, err := estate.Create(dir, "x.log", seal)
	require.NoError(t, err)
	t.Cleanup(l.Close)
	require.NoError(t, l.Begin(messages.Execute{
		ID: "call", Key: messages.SessionKey{Session: "work", Cwd: "/tmp"}, Cells: []messages.Cell{{Code: "1"}, {Code: "2"}, {Code: "3"}},
		CallEnv: map[string]string{"TOKEN": "a secret"},
	}, &estate.News{Restored: &messages.Restored{Memory: messages.Memory{Kept: []string{"x"}}}}))
	require.NoError(t, l.Cell(0, 4))
	l.Emitted(messages.Status{Status: messages.CellRunning})
	l.Output(messages.Stream{Name: messages.StdoutStream, Text: "one\n"}, estate.Place{Frame: 1, Nth: 1})
	l.Emitted(messages.Status{Status: messages.CellComplete})
	l.Ended(0, messages.CellResult{Outcome: messages.OutcomeOK, Status: messages.CellComplete})
	require.NoError(t, l.Cell(1, 5))
	l.Emitted(messages.Status{Status: messages.CellRunning})
	l.Output(messages.LateBegins(0), estate.Place{Frame: 1, Nth: 1, Late: true})
	l.Output(messages.Stream{Name: messages.StderrStream, Text: "wrong\n"}, estate.Place{Frame: 1, Nth: 2, Late: true})
	l.Asked(estate.Question{Request: "q1"}, estate.Place{Frame: 2, Nth: 1})
	l.Asked(estate.Question{Request: "q2"}, estate.Place{Frame: 3, Nth: 1})
	l.Answered("q1")
	l.Called(8, estate.Place{Frame: 4, Nth: 1})
	l.Called(9, estate.Place{Frame: 5, Nth: 1})
	l.Returned(8)
	l.Stopped(messages.CauseTimeout)
	return l, filepath.Join(dir, "x.log")
}

// TestALogTellsHowFarACallCame, and holds no values of variables.
func TestALogTellsHowFarACallCame(t *testing.T) {
	dir := t.TempDir()
	l, path := write(t, dir)
	var events []messages.Event
	r, err := estate.Read(dir, "x.log", seal, func(e messages.Event) error {
		events = append(events, e)
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, "call", r.Exec.ID)
	require.True(t, r.Bare)
	require.Len(t, r.Ended, 1)
	require.True(t, r.Begun && r.Said && !r.Over && !r.Full)
	require.Equal(t, uint64(5), r.ID)
	require.Equal(t, estate.Place{Frame: 5, Nth: 1}, r.At)
	require.Equal(t, "wrong\n", r.Stderr)
	require.Equal(t, []estate.Question{{Request: "q2"}}, r.Questions)
	require.Equal(t, []uint64{9}, r.Calls)
	require.Equal(t, messages.CauseTimeout, r.Stop)
	require.Len(t, events, 6)
	require.Equal(t, uint64(6), r.Events)
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NotContains(t, string(data), "a secret")
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())

	// The next host goes on with it, and so does the one after that.
	l.Close()
	again, err := estate.Reopen(dir, "x.log", seal, r)
	require.NoError(t, err)
	again.Answered("q2")
	again.Freeze()
	again.Returned(9)
	again.Close()
	r, err = estate.Read(dir, "x.log", seal, nil)
	require.NoError(t, err)
	require.Empty(t, r.Questions)
	require.Equal(t, []uint64{9}, r.Calls)
}

// TestALogTellsWhatIsLeftOfCharacters until it is handed on, and which frames were taken.
func TestALogTellsWhatIsLeftOfCharacters(t *testing.T) {
	dir := t.TempDir()
	l, _ := write(t, dir)
	read := func() *estate.Running {
		t.Helper()
		r, err := estate.Read(dir, "x.log", seal, nil)
		require.NoError(t, err)
		return r
	}
	require.False(t, read().Past(5), "a frame of which an event was handed on may have more")
	half := [estate.Streams][]byte{{0xf0, 0x9f}, {0xe2}}
	l.Halves(half, estate.Place{Frame: 6, Nth: 0})
	r := read()
	require.Equal(t, half, r.Halves)
	require.Equal(t, estate.Place{Frame: 6}, r.At)
	require.True(t, r.Past(6) && !r.Past(7) && !r.Past(0))

	l.Output(messages.Stream{Name: messages.StdoutStream, Text: "\ufffd"}, estate.Place{Frame: 7, Nth: 1})
	require.Equal(t, half, read().Halves, "it may not be the last")
	l.Output(messages.ExecuteResult{ExecutionCount: 1}, estate.Place{Frame: 7, Nth: 2})
	r = read()
	require.Empty(t, r.Halves[0])
	require.Empty(t, r.Halves[1])
	require.False(t, r.Past(7))

	l.Halves([estate.Streams][]byte{[]byte("long"), nil}, estate.Place{Frame: 8})
	_, err := estate.Read(dir, "x.log", seal, nil)
	var refused *estate.RefusedError
	require.ErrorAs(t, err, &refused)
}

// TestLogsThatAreRefused: one in which a byte was changed, or a line left out or moved,
// or that has another seal. What is missing at its end was not written.
func TestLogsThatAreRefused(t *testing.T) {
	_, path := write(t, t.TempDir())
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	refused := func(data, key []byte) {
		t.Helper()
		_, err := estate.Parse(bytes.NewReader(data), key, nil)
		var e *estate.RefusedError
		require.ErrorAs(t, err, &e)
	}
	refused(data, []byte("another key of 24 bytes."))
	for i := 0; i < len(data)-1; i += 5 { // without its end the last line is none
		flipped := bytes.Clone(data)
		flipped[i] ^= 1
		refused(flipped, seal)
	}
	lines := bytes.SplitAfter(data, []byte("\n"))
	for i := range len(lines) - 2 {
		refused(bytes.Join(append(append([][]byte{}, lines[:i]...), lines[i+1:]...), nil), seal)
	}
	for i := 0; i < len(data); i += 5 {
		r, err := estate.Parse(bytes.NewReader(data[:i]), seal, nil)
		require.NoError(t, err)
		require.Equal(t, i < len(lines[0]), r == nil)
	}
}

// TestALogThatIsFull leaves events out, and says so; what else is noted is noted.
func TestALogThatIsFull(t *testing.T) {
	dir := t.TempDir()
	l, err := estate.Create(dir, "x.log", seal)
	require.NoError(t, err)
	defer l.Close()
	l.Narrow(1 << 10)
	require.NoError(t, l.Begin(messages.Execute{ID: "call", Cells: []messages.Cell{{}}}, nil))
	require.NoError(t, l.Cell(0, 1))
	text := string(bytes.Repeat([]byte("x"), 200))
	for n := range 9 {
		l.Output(messages.Stream{Name: messages.StdoutStream, Text: text}, estate.Place{Frame: uint64(n + 1), Nth: 1})
	}
	l.Stopped(messages.CauseCancelled)
	r, err := estate.Read(dir, "x.log", seal, nil)
	require.NoError(t, err)
	require.True(t, r.Full)
	require.Less(t, r.Events, uint64(9))
	require.Equal(t, messages.CauseCancelled, r.Stop)
}

// TestWhoReadsMayEnd: the error is that of who reads.
func TestWhoReadsMayEnd(t *testing.T) {
	dir := t.TempDir()
	write(t, dir)
	enough := errors.New("enough")
	_, err := estate.Read(dir, "x.log", seal, func(messages.Event) error { return enough })
	require.ErrorIs(t, err, enough)
	require.Equal(t, []estate.Claim{{ID: "call", Key: messages.SessionKey{Session: "work", Cwd: "/tmp"}}}, estate.Claims(dir))
}

// FuzzLog: whatever is in a log, reading it ends, and one that is not ours is refused.
func FuzzLog(f *testing.F) {
	_, path := write(f, f.TempDir())
	data, err := os.ReadFile(path)
	require.NoError(f, err)
	f.Add(data)
	f.Add(data[:len(data)/2])
	f.Add([]byte("\n\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := estate.Parse(bytes.NewReader(data), seal, func(messages.Event) error { return nil })
		var refused *estate.RefusedError
		if err != nil && !errors.As(err, &refused) {
			t.Fatal(err)
		}
		if err == nil && r != nil && r.Exec.ID == "" {
			t.Fatal("a log without a call was taken")
		}
	})
}

// FuzzNote: what is taken is whole, and is read again as it was.
func FuzzNote(f *testing.F) {
	data, err := note().Encode()
	require.NoError(f, err)
	f.Add([]byte(data))
	f.Fuzz(func(t *testing.T, data []byte) {
		n, err := estate.ParseNote(data)
		if err != nil {
			return
		}
		again, err := n.Encode()
		if err != nil {
			t.Skip() // it is longer in our words
		}
		same, err := estate.ParseNote(again)
		require.NoError(t, err)
		require.Equal(t, n.Key, same.Key)
	})
}

// TestACellWithAName is noted by it, and sent once more under another one.
func TestACellWithAName(t *testing.T) {
	dir := t.TempDir()
	l, err := estate.Create(dir, "x.log", seal)
	require.NoError(t, err)
	exec := messages.Execute{ID: "call", Key: note().Key, Cells: []messages.Cell{{Code: "1"}, {Code: "2"}}}
	require.NoError(t, l.Begin(exec, nil))
	require.NoError(t, l.Sent(0, "session_1"))
	require.NoError(t, l.Sent(0, "session_2"))
	r, err := estate.Read(dir, "x.log", seal, nil)
	require.NoError(t, err)
	require.True(t, r.Begun)
	require.Equal(t, "session_2", r.Ref)
	l.Ended(0, messages.CellResult{Outcome: messages.OutcomeOK})
	r, err = estate.Read(dir, "x.log", seal, nil)
	require.NoError(t, err)
	require.False(t, r.Begun)
	require.Empty(t, r.Ref)
	l.Freeze()
	require.ErrorIs(t, l.Sent(1, "session_3"), estate.ErrFrozen)
	l.Close()
}

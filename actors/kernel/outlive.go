package kernel

import (
	"context"
	"os"

	"github.com/coppice-run/coppice/messages"
)

// Freezer is implemented by interpreters whose memory can be written down and read by
// another one. Its methods are called like Execute: from one goroutine at a time and not
// while a cell runs.
type Freezer interface {
	// Freeze copies the interpreter, so that it goes on while the copy is written
	// down. The error is a *messages.HibernateRefused when it cannot be copied.
	Freeze(ctx context.Context) (Frozen, error)
	// Thaw has an interpreter that has run nothing take over what a file holds, of
	// which image is what Frozen.Write returned. The error is a
	// *messages.HibernateRefused when this is not the interpreter for it, or when it
	// could not be read: the interpreter must not be used then.
	Thaw(ctx context.Context, from *os.File, image messages.RawJSON) (Thawed, error)
}

// Frozen is the memory of an interpreter at one moment. It belongs to one goroutine.
type Frozen interface {
	// Write writes it to a file, from its beginning, and returns what the file holds.
	Write(ctx context.Context, to *os.File, how Writing) (image messages.RawJSON, err error)
	// Close lets go of it.
	Close(ctx context.Context) error
}

// Writing says how the memory of an interpreter is written.
type Writing struct {
	// Without are names to leave out.
	Without []string
	// Apart writes each name by itself, to find out which of them cannot be read again.
	Apart bool
	// Whole writes nothing when something would be lost; what is returned then says what.
	Whole bool
}

// Thawed is what an interpreter says of what it took over.
type Thawed struct {
	// Said is what came otherwise than the image says, a sentence each.
	Said []string `json:"said"`
	// Failed is what did not come, or as something else.
	Failed []messages.LostName `json:"failed"`
}

// Freezing is implemented by a backend whose interpreters are a [Freezer]. Freezes says
// whether they are on this system.
type Freezing interface{ Freezes() bool }

// Sleeper is a session that is to be kept on disk.
type Sleeper struct {
	Key messages.SessionKey
	// Owners have used it, and may have it; with "" among them, calls without an owner
	// have, and everyone may.
	Owners []string
	// Interpreter has what is to be kept, Backend and Env are where it came from.
	Interpreter Interpreter
	Backend     Backend
	Env         map[string]string
	// Earlier is what it was restored with, when no one has been told yet. nil: all
	// is told.
	Earlier *messages.Restored
}

// Woken is what an interpreter took over of a session that was kept on disk.
type Woken struct {
	// Restored is what is told of it. nil: nothing was kept.
	Restored *messages.Restored
	// Owners may have the session, as [Sleeper] says; none: everyone.
	Owners []string
}

// Outliver is implemented by interpreters that outlive the host once they have all that the
// session is to have. Outlive has it do so from when it returns: before that it ends with the
// host, and what is kept on disk of the session is what counts. owners may have it besides
// those who call it, and news is what nobody has been told; nil: there is none. Calls after the
// first do nothing.
type Outliver interface {
	Outlive(ctx context.Context, owners []string, news *News)
}

// Outlive has an interpreter outlive the host, if it can.
func Outlive(ctx context.Context, i Interpreter, owners []string, news *News) {
	if o, ok := i.(Outliver); ok {
		o.Outlive(ctx, owners, news)
	}
}

// Teller is implemented by interpreters that outlive the host, and note whether a result has told
// how their session began ([News]) apart from what is written down of calls ([Record]). Told is
// called by the goroutine that runs a call, before the first such result is handed on.
type Teller interface{ Told() }

// Hibernation keeps what sessions have in memory while they have no kernel. Package
// hibernate has it. Any goroutine may call its methods.
type Hibernation interface {
	// Sleep writes down what a session has, reads it in a second interpreter, and
	// returns when it is kept. The interpreter is as it was. The error is a
	// *messages.HibernateRefused, and nothing is kept then.
	Sleep(ctx context.Context, s Sleeper) (messages.Hibernated, error)
	// Save does as Sleep, as a checkpoint that stays until it is dropped, while the session
	// goes on.
	Save(ctx context.Context, s Sleeper, m messages.SaveCheckpoint) (messages.Hibernated, error)
	// Wake puts what is kept of a session into an interpreter that has run nothing, for
	// an owner, and keeps it no longer; where a checkpoint was made ready for the session, it
	// is that, which is kept. The zero value: nothing is kept. When it fails, it
	// is kept as before and the interpreter must not be used. Before it is kept no longer, it is
	// the interpreter's for good ([Outlive]): a host that is killed loses it at no point.
	Wake(ctx context.Context, key messages.SessionKey, owner string, into Interpreter) (Woken, error)
	// Forget drops what is kept of a session. It returns at once; a Wake that comes
	// after it finds nothing.
	Forget(key messages.SessionKey)
	// ForgetWorkspace does so with all sessions of a workspace, and their checkpoints.
	ForgetWorkspace(name string)
	// Unkept hears of a session that Sleep was to write down unasked, and why it did not: it was
	// idle, another one needed its place, or its host ends. over: it has ended, and what it had in
	// memory is lost; nobody may be there whom an answer could tell.
	Unkept(key messages.SessionKey, over bool, why error)
	// Begin has the next Wake of a session take a checkpoint that was made ready. False:
	// that was given up. It returns at once.
	Begin(key messages.SessionKey, ready string) bool
}

// Package client drives the sessions, the workspaces and the tools of a running `coppice
// serve`: from another program, or from another run of the same one.
//
//	c, err := client.Find(client.FindOptions{})
//	if err != nil { … } // client.ErrNoServer: none runs
//	defer c.Close()
//
//	for e, err := range c.Run(ctx, client.Execute{Session: "analysis", Cells: []messages.Cell{{Code: "1+1"}}}) {
//	    …
//	}
//
// # Guarantees
//
//   - [Client.Events] yields each event of an execution once and in order, also
//     when the connection breaks in between: it comes back with the number of the
//     last event that it saw. It gives up when the server could not be reached
//     for Options.Patience. However long an execution prints nothing is no matter.
//   - [Client.Start] may be repeated: an execution has an id that the client
//     makes, and the server runs an id once. The client itself repeats requests
//     whose repetition changes nothing, and others until there is a connection. What one
//     life of a server may have begun is not sent to another one: the error has the code
//     lost where nobody knows whether it ran.
//   - A server that says nothing is out of reach after about Options.Patience, whatever it was
//     asked: what is answered at once fails then, and what takes its time as soon as the server
//     does not say how it is any more. What still comes, or is still sent, is progress. A
//     certificate that is not trusted is an error at once.
//   - The first result of a session after a restart which has not kept that says so in its Reason and
//     its Text, when this client has had an earlier result of the session by [Client.Events].
//   - A process that was started by this client, and is not known to the server that runs now, is
//     an error with the code lost.
//   - A client of [Find] follows its server when that is started again, at another address or
//     with another token.
//   - At a fleet, code that counts on variables which are gone with a node does not begin:
//     the first Start after the loss returns an error with the code epoch_gone, and the next
//     one begins in the new epoch. After [Client.CloseSession] nothing is expected to be there.
//   - [Client.ProcessEvents] does the same for what a process of a workspace prints, and a
//     [FileReader] for what a file holds: they go on where a connection broke.
//   - Files stream: none is in memory as a whole. One that is written is not sent a second time.
//   - [Client.RunTool] makes a run once. When its connection breaks the run is
//     cancelled, and the error says so.
//   - The token leaves this process only to the address in the server's file, and
//     Find uses that file only when it belongs to a process that still runs: the one
//     that wrote it, by its number, its start and the boot of the machine.
//
// A connection may break at any time:
//
//	connecting ──▶ streaming ──final──▶ done
//	    ▲  │           │
//	    │  └─patience──┼──▶ failed
//	    └─── broken ◀──┘
//
// All methods may be called from any goroutine. The errors of the server are
// *[Error].
package client

package secondlook

var faults = []Row{
	{ID: "C1", Defect: "connections with half a request locked the owner out of the servers, without a token", Held: []string{"cmd/coppice TestFlood", "internal/inbound TestStrangersAreBounded", "internal/bridge TestHalfARequest"}},
	{ID: "C2", Defect: "the confinement of sessions left ways out to the network, to other processes and to files outside", Open: "a filter of system calls has to close them"},
	{ID: "C3", Defect: "a device or FIFO in the place of a notebook ate the host's memory, or held the request for ever", Held: []string{"notebook TestNoFile", "cmd/internal/httpapi TestNotebookIsNoFile", "cmd/internal/mcpserver TestNotebookIsNoFile", "internal/file TestNotRegular"}},
	{ID: "C4", Defect: "the result of a call that never began said that a time had passed and a kernel had been replaced", Held: []string{"sinks/result TestForms", "messages TestNotStarted", "actors/gateway TestEachCallEndsAtItsOwnDeadline"}},
	{ID: "C5", Defect: "the prompt of input() reached the terminal with its control sequences", Held: []string{"cmd/internal/cli/console TestAPromptIsHarmless"}},
	{ID: "C6", Defect: "what a shell command or a gateway's kernel had started outlived a killed host", Open: "one owner for all that a session, kernel or command starts"},
	{ID: "C7", Defect: "when the fork server died the ends of its sessions were told one after the other, seconds late", Held: []string{"actors/kernel/runner TestOrphansThatDieTogetherAreTold", "internal/forkserver TestSessionsThatDieTogetherShareALook"}},
	{ID: "C8", Defect: "a fork server that is stopped was not noticed, and held up ends and the shutdown", Held: []string{"actors/kernel/runner TestAForkServerThatIsStoppedIsNoticed", "actors/kernel/runner TestAForkServerThatIsStoppedHoldsNothingUp"}},
	{ID: "C9", Defect: "a call that came while its session was being closed did not heed its deadline", Held: []string{"supervisor TestNotBegunIsWithdrawn"}},
	{ID: "C10", Defect: "a session with a number sign in its name or folder could not be seen or closed over HTTP", Held: []string{"cmd/internal/httpapi TestANumberSignInAName"}},
	{ID: "C11", Defect: "with no thread left the host itself ends, and a table of the documents said otherwise", Open: "the table has to leave the host's own threads out"},
	{ID: "C12", Defect: "a signal before the code had begun ended a run with one of two codes, by chance", Held: []string{"cmd/internal/cli/console TestStopped"}},
	{ID: "C13", Defect: "a cell could read the host's whole environment, which the filter keeps from it, and secrets of some forms passed the filter", Held: []string{"internal/secret TestNames", "internal/secret TestValues", "internal/pyenv TestFilterHostileEnvironment"}, Open: "the environment of the host has to be out of reach on the rungs that promise it"},
	{ID: "C14", Defect: "folders of killed hosts stayed in the temporary folder, and some control characters passed to the terminal", Held: []string{"cmd/internal/cli TestNothingHostileReachesATerminal"}, Open: "the next start has to remove what killed hosts left"},
	{ID: "C15", Defect: "names, titles and errors reached the terminal with characters that conceal or turn text around", Held: []string{"cmd/internal/cli TestNothingHostileReachesATerminal", "cmd/internal/cli/console TestWhatReachesATerminal", "cmd/internal/top TestHostileNames", "sinks/sanitise TestTerminal"}},
	{ID: "C16", Defect: "an interpreter that a signal ended while it was looked at was taken for none, and every call was refused for seconds", Held: []string{"internal/pyenv TestASignalSaysNothingAboutPython", "actors/kernel/runner TestAForkServerComesBackInAStorm", "internal/pyenv TestKnown"}},
	{ID: "C17", Defect: "under faults fewer than half of the calls reached a cell, as those that came meanwhile were refused", Held: []string{"actors/kernel TestAvailability", "test/integration TestCallsWaitForAServerThatIsKilled"}},
}

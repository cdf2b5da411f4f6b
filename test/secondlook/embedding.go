package secondlook

var embedding = []Row{
	{ID: "E1", Defect: "a host with its default options turned most of fifty conversations away", Held: []string{"test/integration TestFiftyConversations", "test/integration TestASessionWithoutAPlaceWaits"}},
	{ID: "E2", Defect: "a call that never ran, timed out or lost its kernel gave no error, and claimed a state of variables", Held: []string{"messages TestErr", "messages TestNotStarted"}},
	{ID: "E3", Defect: "code in an endless loop lost its session on a busy machine, where it could not run once in its grace", Held: []string{"actors/kernel TestAKernelWithoutAProcessorIsNotGivenUp", "test/integration TestAKernelWithoutAProcessorKeepsItsState"}},
	{ID: "E4", Defect: "healthy, idle sessions were ended as hung after the machine had stood still", Held: []string{"test/integration TestAFrozenHostLosesNothing", "supervisor/strategy TestHeartbeatInAllCombinations", "supervisor TestAStallEndsNobody"}},
	{ID: "E5", Defect: "the host's own gateway had half a minute to start, whatever else the machine did", Held: []string{"actors/kernel TestAStartIsBoundedByItsChance", "actors/gateway TestHowSoonTheSharedProcessIsStartedAgain"}},
	{ID: "E6", Defect: "over HTTP, in the newest version of the protocol, all clients shared one session and read each other's variables", Held: []string{"cmd/internal/mcpserver TestTwoClientsShareNothing", "cmd/internal/mcpserver TestAStatelessClientNamesNothing", "test/integration TestTwoConversations"}},
	{ID: "E7", Defect: "a page of this machine's name was refused by the server at its address", Held: []string{"cmd/internal/httpserver TestWhoGetsIn"}},
	{ID: "E8", Defect: "the document of the HTTP API had gaps, so that generated clients returned nothing and wrong requests passed", Held: []string{"cmd/internal/httpapi TestWhatTheSchemaForbids", "cmd/internal/httpapi TestTheDocumentForGenerators", "cmd/internal/httpapi TestTheDocumentIsTrue", "test/openapi/run.py: for client in (python_client, typescript_client, go_client)"}},
	{ID: "E9", Defect: "a probe without the token could not learn whether the server lives", Held: []string{"cmd/internal/httpapi TestLiveness", "cmd/internal/httpserver TestHealthAndReadinessAreSaidWithoutAToken"}},
	{ID: "E10", Defect: "what a library's host can be told, the commands that serve had no flags for", Open: "flags for isolation, limits and the budget of output"},
	{ID: "E11", Defect: "the metrics had no sessions by state, no queue and no requests", Held: []string{"sinks/prom TestTheTreeIsCounted"}},
	{ID: "E12", Defect: "a host could not list its sessions, its forks had names that no one could choose, and files and labels had no interface", Held: []string{"test/integration TestForksOfALiveSession"}, Open: "files, processes and labels"},
	{ID: "E13", Defect: "the adapters could not be fetched as modules", Held: []string{"test/fetch TestDownload", "test/fetch TestPrograms"}},
	{ID: "E14", Defect: "wrong command lines were answered with the wrong reason, code or nothing", Held: []string{"cmd/internal/cli TestMistakes", "cmd/internal/cli TestEnvironmentTopic", "cmd/internal/render TestWhatACellShowed"}},
	{ID: "E15", Defect: "the live view had no way in but a token that had to be copied, and hid much of what it knew", Held: []string{"cmd/internal/liveview TestThePageLoadsNothingFromElsewhere"}},
	{ID: "E16", Defect: "many forks asked for at once let the first answer wait for seconds", Held: []string{"actors/kernel TestTurns"}, Kept: "the machine was busy with other tests for most of that time; starts take turns now, and one that waits says its place"},
}

package main

// steps are the tests that run, with what they are about.
var steps = []step{
	{name: "integration gateway", pkg: "test/integration", run: "^(" + timed + ")$", env: []string{"COPPICE_TEST_BACKEND=gateway"}},
	{name: "integration runner", pkg: "test/integration", run: "^(" + timed + ")$", env: []string{"COPPICE_TEST_BACKEND=runner"}},
	{name: "integration both", pkg: "test/integration", run: "^(" + both + ")$"},
	{name: "conformance", pkg: "test/conformance", run: "^(TestConformance|TestLateOutput|TestTheBudgetOfACell|TestQuestionsAreAnsweredOnce)$"},
	{name: "displays", pkg: "test/displays", run: "."},
	{name: "cli", pkg: "cmd/coppice", run: "^TestScripts$/^(run|signals|startup|sessions|failures|stdin|notebook-run|gateway)$"},
}

// timed are tests that run on the backend that the variable names.
const timed = "TestATimeoutEndsTheCellAndKeepsTheSession|TestACellThatSwallowsTheInterruptLosesTheState|" +
	"TestACallerThatLeavesInterruptsItsCallOnly|TestAKernelThatKillsItselfIsLost|TestAnIdleKernelThatIsKilledGrowsBackOnce|" +
	"TestStreamEndsWithTheResult|TestABusySessionOutlivesItsTTL"

// both are tests that name their backends themselves.
const both = "TestAFrozenHostLosesNothing|TestAHungKernelIsEndedOnABusyMachine|TestAKernelWithoutAProcessorKeepsItsState|" +
	"TestFiftyConversations|TestASessionWithoutAPlaceWaits|TestTheTimeForAStart|TestTheRuntimeLimit|" +
	"TestAFrozenKernelIsReplacedOnceAndThenFailsForGood|TestConcurrentResetsMakeOneKernel|TestADeadKernelIsReplacedBeforeItIsUsed|TestAStoppedGatewayLosesNothing|TestCallsWaitForAServerThatIsKilled|TestAKilledHostLeavesNothing|" +
	"TestLoopsThatAreInterruptedKeepTheirState|TestAGatewayStartsOnABusyMachine"

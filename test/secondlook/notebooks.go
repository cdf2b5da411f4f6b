package secondlook

var notebooks = []Row{
	{ID: "N1", Defect: "a process that left its session outlived a killed host without a control group, against what the documents promised", Held: []string{"test/integration TestNothingThatEscapesOutlivesItsHost", "internal/process TestBothProcessesOfAnOwnerAreKilled"}, Said: []string{"ARCHITECTURE.md: a subreaper that ends all that descends from it when the host does, also by SIGKILL"}},
	{ID: "N2", Defect: "fixed times for starts failed many runs on a busy machine, and one failure refused every later call at once", Held: []string{"actors/kernel TestAStartIsBoundedByItsChance", "actors/kernel TestAvailability", "test/integration TestCallsWaitForAServerThatIsKilled"}},
	{ID: "N3", Defect: "a notebook that was saved while one of its cells ran ended the watch, without the output", Held: []string{"cmd/internal/cli/notebook TestSavedWhileACellRuns"}},
	{ID: "N4", Defect: "a result with an id of its own was not updated when the display of that id was", Held: []string{"internal/recording TestCell", "internal/recording/cell_test.go: an update of a value"}},
	{ID: "N5", Defect: "what a widget for output captures was recorded as the cell's own", Held: []string{"notebook/run TestWhatAWidgetCapturesIsNotTheCells"}},
	{ID: "N6", Defect: "scripts with lines before their first marker, or of markdown alone, were refused or read wrongly", Held: []string{"notebook TestScriptsAreTold", "notebook TestPercent"}},
	{ID: "N7", Defect: "many small prints cost many times what they do in plain Python", Said: []string{"docs/limits.md: every flushed print is an event of its own"}},
	{ID: "N8", Defect: "saving a notebook lost the extended attributes of its file", Held: []string{"internal/file TestWriteKeepsExtendedAttributes"}},
	{ID: "N9", Defect: "notebooks of old versions that the official schemas refuse were called valid", Held: []string{"notebook TestVerdictsOnVersion3AreNbformats"}},
	{ID: "N10", Defect: "a very deep recursion took many seconds to describe, and could not be interrupted meanwhile", Held: []string{"test/conformance TestErrorPlaces", "test/conformance/errors_test.go: a deep recursion of two"}},
	{ID: "N11", Defect: "of the host's own way to functions kernels were not given the token, but the address and the session", Held: []string{"internal/pyenv TestFilterHostileEnvironment", "cmd/internal/cli TestEnvironmentTopic"}},
	{ID: "N12", Defect: "turning a markdown cell into code and back lost its attachments without a word", Held: []string{"notebook TestAttachmentsOutliveAChangeOfType"}},
	{ID: "N13", Defect: "the tool that reads notebooks took no lines behind the path, where the command did", Held: []string{"agent TestNotebookReadTakesLines"}},
	{ID: "N14", Defect: "a reset belongs to a call and not to each cell, and no document said so", Held: []string{"actors/gateway TestAResetDuringAResetIsRefused"}, Said: []string{"request.go: Reset starts a new kernel before the first cell."}},
	{ID: "N15", Defect: "a run did not note the language in the notebook, so that editors showed it without colours", Held: []string{"notebook/run TestTheLanguageIsNoted"}},
	{ID: "N16", Defect: "a notebook of hundreds of megabytes took several times its size in memory, and was written whole for each cell", Held: []string{"notebook TestSaveHoldsNoCopyOfTheNotebook", "notebook/run TestSavesAreBoundedInTimeAndBytes"}},
	{ID: "N17", Defect: "a run that was killed left a hidden lock file", Held: []string{"notebook TestSaveAfterAKilledOne"}},
	{ID: "N18", Defect: "an exported page was said to run nothing, and has a script of its own", Said: []string{"notebook/page/doc.go: the page load nothing and run only its own few lines"}},
	{ID: "N19", Defect: "some scripts in the percent format were read otherwise than by the tool that the format comes from", Held: []string{"notebook TestPercentIsReadAsJupytextReadsIt", "notebook TestPercentIsWrittenAsJupytextWritesIt"}},
}

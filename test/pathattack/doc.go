// Package pathattack has the paths by which tests try to get out of the folder of a
// workspace, and what has to stand in that folder for them: what the files of a workspace
// refuse, every door to them refuses too.
package pathattack

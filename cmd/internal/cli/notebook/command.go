package notebook

import (
	"github.com/spf13/cobra"

	"github.com/coppice-run/coppice/cmd/internal/cli/console"
)

// Command is coppice notebook, with the commands below it.
func Command(c *console.Console) *cobra.Command {
	a := &app{Console: c}
	cmd := console.Command{
		Use:     "notebook",
		Aliases: []string{"nb"},
		Short:   "Show, edit, run and compare notebooks",
		Long: `Work with .ipynb files. A notebook is shown as text with a marker line before
each cell, and edited text is applied to it; what an edit does not touch stays
byte for byte. CELL is an index, counted from 0 as in the markers, or the id of
a cell (id:5 for an id that looks like a number). Behind --, -1 is the last cell.

  # %% [markdown] cell:0
  # Prices
  # %% [code] cell:1
  import pandas as pd

A file that changed between reading and writing is never overwritten.
The exit code is 0 when all is well, 1 when something is wrong with the
notebook, and 2 when the command line is wrong; that of run is like that of
coppice run.

Git can use these as a text conversion, a filter and a merge driver:

  git config diff.ipynb.textconv "coppice notebook show"
  git config filter.ipynb.clean "coppice notebook strip -"
  git config merge.ipynb.driver "coppice notebook merge --output %A %O %A %B"`,
	}.Make()
	cmd.AddGroup(
		&cobra.Group{ID: "read", Title: "Read:"},
		&cobra.Group{ID: "text", Title: "Edit as text, and run:"},
		&cobra.Group{ID: "cells", Title: "Edit cells:"},
		&cobra.Group{ID: "files", Title: "Whole files:"},
	)
	for group, commands := range map[string][]*cobra.Command{
		"read":  {a.showCommand(), a.cellsCommand(), a.searchCommand(), a.validateCommand(), a.diffCommand()},
		"text":  {a.editCommand(), a.applyCommand(), a.runCommand()},
		"cells": {a.insertCommand(), a.replaceCommand(), a.deleteCommand(), a.moveCommand(), a.splitCommand(), a.joinCommand(), a.tagCommand(), a.metaCommand(), a.subCommand()},
		"files": {a.newCommand(), a.stripCommand(), a.mergeCommand()},
	} {
		for _, c := range commands {
			c.GroupID = group
			cmd.AddCommand(c)
		}
	}
	return cmd
}

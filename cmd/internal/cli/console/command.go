package console

import (
	"context"

	"github.com/spf13/cobra"
)

// ErrNameless refuses a session whose name is empty, often that of a variable of the shell that is
// not set: no other command could name it.
var ErrNameless = Usagef("the name of a session is not empty; name one, such as analysis")

// Any is the Most of a command that takes as many arguments as there are.
const Any = -1

// Arguments says how many arguments a command takes. The zero value: none.
type Arguments struct {
	// Least and Most bound their number; Most may be Any.
	Least, Most int
	// Wants is what is said when there are others. "": the line that uses the command
	// right.
	Wants string
}

// Command describes a command: every command is made from one, so that all count their
// arguments, end and fail alike.
type Command struct {
	// Use, Short, Long, Example and Aliases are as cobra has them: the name and the
	// arguments; a line; the help; command lines; other names.
	Use, Short, Long, Example string
	Aliases                   []string
	// Args is how many arguments it takes.
	Args Arguments
	// Run does what the command does, after its flags were read. nil: it has others
	// below it, and shows its help.
	Run func(ctx context.Context, args []string) error
	// Errors tells apart what Run fails with: which of it is the command line's. What
	// is not [Decided] afterwards ends the command with Raised. nil: all of it.
	Errors func(error) error
	// Below are the commands below this one.
	Below []*cobra.Command
}

// Make makes the command. Its flags are the caller's to add.
func (c Command) Make() *cobra.Command {
	cmd := &cobra.Command{Use: c.Use, Short: c.Short, Long: c.Long, Example: c.Example, Aliases: c.Aliases, Args: c.Args.check}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if c.Run == nil {
			return Failure(cmd.Help())
		}
		if f := cmd.Flags().Lookup("session"); f != nil && f.Changed && f.Value.String() == "" {
			return ErrNameless
		}
		err := c.Run(cmd.Context(), args)
		if c.Errors != nil {
			err = c.Errors(err)
		}
		if !Decided(err) {
			err = Failure(err)
		}
		return err
	}
	cmd.AddCommand(c.Below...)
	return cmd
}

// check counts the arguments.
func (a Arguments) check(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) >= a.Least && (a.Most == Any || len(args) <= a.Most):
		return nil
	case a.Wants != "":
		return Usagef("%s", a.Wants)
	case a.Most == 0:
		return cobra.NoArgs(cmd, args)
	default:
		return Usagef("use it as: %s", cmd.UseLine())
	}
}

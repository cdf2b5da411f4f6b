//go:build unix

// Command suite goes through the documents as a reader does: what they have one type is
// typed into a shell, programs in Python and TypeScript are run with their clients, all
// against the command as it was built. Each document has a home and a folder of its own.
//
//	go run ./test/documents/suite -coppice bin/coppice -python python3
//	go run ./test/documents/suite -only tutorials/deploy     the documents with that in their names
//
// Blocks that cannot be run are told with the reason. It exits with 1 when something did
// not end, or did not print, as the document says.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/coppice-run/coppice/test/documents"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "documents:", err)
		os.Exit(1)
	}
}

// address is that of a server that is told no other; the documents name it.
const address = "127.0.0.1:7788"

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("suite", flag.ContinueOnError)
	var p place
	flags.StringVar(&p.coppice, "coppice", "bin/coppice", "the command")
	flags.StringVar(&p.python, "python", "python3", "what runs blocks of Python")
	flags.StringVar(&p.typescript, "typescript", "", "the folder of the client for TypeScript, built; empty: such blocks are not run")
	flags.StringVar(&p.keep, "keep", filepath.Join(os.TempDir(), "coppice-documents"), "the folder for what is made")
	patience := flags.Duration("patience", 30*time.Minute, "for one document")
	only := flags.String("only", "", "the documents with this in their names")
	if err := flags.Parse(args); err != nil {
		return fmt.Errorf("read the arguments: %w", err)
	}
	if err := p.settle(); err != nil {
		return err
	}
	blocks, err := documents.Read(".")
	if err != nil {
		return fmt.Errorf("run this from the top of the repository: %w", err)
	}
	if wrong := documents.Check(blocks); len(wrong) > 0 {
		return fmt.Errorf("the table of blocks is not whole:\n%s", strings.Join(wrong, "\n"))
	}
	free, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("the documents have servers at their usual address; end the one that runs: %w", err)
	}
	if err := free.Close(); err != nil {
		return fmt.Errorf("leave the address to them: %w", err)
	}
	var sum count
	begin := time.Now()
	for _, story := range documents.Stories(blocks) {
		if !strings.Contains(story.Doc, *only) {
			continue
		}
		one, cancel := context.WithTimeout(ctx, *patience)
		told, err := p.tell(one, story, out)
		cancel()
		sum.add(told)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", story.Doc, err)
		}
	}
	if _, err := fmt.Fprintf(out, "%d as the documents say, %d not run, %d otherwise; %.0f s\n", sum.good, sum.not, sum.wrong, time.Since(begin).Seconds()); err != nil {
		return fmt.Errorf("tell the end: %w", err)
	}
	if sum.wrong > 0 {
		return errors.New("not everything is as the documents say")
	}
	return nil
}

// count is how steps have ended.
type count struct{ good, wrong, not int }

func (c *count) add(o count) { c.good, c.wrong, c.not = c.good+o.good, c.wrong+o.wrong, c.not+o.not }

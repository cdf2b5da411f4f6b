package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
)

// errFindings says that the work was done, and has found something.
var errFindings = errors.New("there are findings")

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: vet FOLDER SYSTEM...")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := vet(ctx, os.Args[1], os.Args[2:])
	stop()
	switch {
	case errors.Is(err, errFindings):
		os.Exit(1)
	case err != nil:
		fmt.Fprintln(os.Stderr, "vet:", err)
		os.Exit(2)
	}
}

// vet looks at the module in a folder for each of the systems, and prints what it finds.
func vet(ctx context.Context, dir string, systems []string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	if err := complete(ctx, dir); err != nil {
		return err
	}
	clean := true
	for _, system := range systems {
		found, err := look(ctx, dir, system)
		if err != nil {
			return fmt.Errorf("for %s: %w", system, err)
		}
		for _, f := range found {
			fmt.Fprintln(os.Stderr, f)
			clean = false
		}
	}
	if !clean {
		return errFindings
	}
	return nil
}

// Command quickstart gives two sessions their own variables and runs them at
// the same time. Set up Python once with `coppice setup`, then:
//
//	go run ./examples/quickstart
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"
	"sync"
	"time"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/messages"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	host, err := coppice.Start(ctx, coppice.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer func() {
		c, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if report := host.Shutdown(c); !report.Clean() {
			log.Printf("left behind: %+v", report.Leftovers)
		}
	}()

	var wg sync.WaitGroup
	for _, name := range []string{"left", "right"} {
		wg.Go(func() {
			session := host.Session(name)
			result, err := session.Execute(ctx, coppice.Request{
				Timeout: 30 * time.Second,
				Cells:   []messages.Cell{{Code: "me = " + fmt.Sprintf("%q", name)}, {Code: "print('I am', me)"}},
			})
			if err != nil {
				log.Print(err)
				return
			}
			fmt.Printf("%s: %s\n%s\n", name, result.Outcome, result.Text)
		})
	}
	wg.Wait()
}

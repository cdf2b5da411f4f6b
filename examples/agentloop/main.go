// Command agentloop is an agent loop with a scripted model: its code calls tools
// of the host, asks for input, remembers and compacts the conversation, forks
// three copies of the agent and gathers what they found.
//
//	go run ./examples/agentloop
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"time"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/agent/selfref"
	"github.com/coppice-run/coppice/messages"
)

// script is what the model says, turn by turn: a real one would be asked.
var script = []string{
	"price = {name: tool.price(name=name) for name in ('tea', 'milk')}\nprint(price)",
	"who = input('Who is it for? ')\nprint('for', who)",
	"runtime.selfref.context.remember(f'the tea is for {who}')['id']",
	`handles = [runtime.selfref.fork.spawn(f"print({n} * {price['tea']})") for n in (1, 2, 3)]
for name, r in runtime.selfref.fork.gather_all(handles).items():
    print(name, r['status'], r['response'])`,
	`runtime.selfref.context.compact("buy tea", "ask for whom", [f"tea costs {price['tea']}"], ["asked"], "ready to buy", ["buy"], [])['status']`,
}

// memory is the key of the conversation.
const memory = "shopping"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, coppice.Options{}, os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// run is one conversation.
func run(ctx context.Context, o coppice.Options, out io.Writer) error {
	store := &selfref.Memory{}
	prices := map[string]int{"tea": 4, "milk": 1}
	o.MaxSessions = 8
	o.HostCalls.Functions = []coppice.HostFunction{
		coppice.Function("price", "What something costs.", func(_ context.Context, in struct{ Name string }) (int, error) {
			p, ok := prices[in.Name]
			if !ok {
				return 0, &messages.HostError{Type: "KeyError", Message: "nobody sells " + in.Name}
			}
			return p, nil
		}),
	}
	// The forked agent runs its task as code. A real one would go on from f.History.
	o.HostCalls.Selfref = &coppice.Selfref{Store: store, Agent: func(ctx context.Context, f coppice.AgentFork) (selfref.Answer, error) {
		r, err := f.Session.Execute(ctx, coppice.Request{Cells: []messages.Cell{{Code: f.Message}}})
		return selfref.Answer{Response: r.Text}, err
	}}
	var notSaved error // a loop that has the conversation in memory would read it again in OnCommit
	o.HostCalls.Selfref.OnCommit = func(c selfref.Commit) { notSaved = c.Err }
	host, err := coppice.Start(ctx, o)
	if err != nil {
		return err
	}
	defer func() {
		c, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if report := host.Shutdown(c); !report.Clean() {
			log.Printf("left behind: %+v", report.Leftovers)
		}
	}()
	talk := []selfref.Message{{Role: "system", Content: "You write Python."}, {Role: "user", Content: "Buy tea."}}
	if err := store.Save(ctx, memory, talk); err != nil {
		return err
	}
	session := host.Session("agent")
	for i, code := range script {
		// What a cell changes in the conversation is there when the answer is added: a
		// compaction keeps the call that it is to follow.
		args, err := json.Marshal(map[string]string{"code": code})
		if err != nil {
			return err
		}
		asks := selfref.ToolCall{ID: fmt.Sprintf("call-%d", i+1), Name: "python", Arguments: args}
		if err := say(ctx, store, selfref.Message{Role: "assistant", ToolCalls: []selfref.ToolCall{asks}}); err != nil {
			return err
		}
		r, err := session.Execute(ctx, coppice.Request{
			Cells: []messages.Cell{{Code: code}}, Timeout: time.Minute, Memory: memory,
			Input: func(context.Context, messages.InputRequest) (string, error) { return "Ada", nil },
		})
		if err != nil {
			return err
		}
		if notSaved != nil {
			return notSaved
		}
		if _, err := fmt.Fprintf(out, "%s: %s\n", r.Outcome, r.Text); err != nil {
			return err
		}
		if err := say(ctx, store, selfref.Message{Role: "tool", ToolCallID: asks.ID, Content: r.Text}); err != nil {
			return err
		}
	}
	left, err := store.Load(ctx, memory)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%d messages are left; the first ends:\n%s\n", len(left), left[0].Content)
	if err == nil {
		err = selfref.Check(left) // a provider would refuse one that does not hold together
	}
	return err
}

// say adds a message to the conversation.
func say(ctx context.Context, store selfref.Store, m selfref.Message) error {
	list, err := store.Load(ctx, memory)
	if err != nil {
		return err
	}
	return store.Save(ctx, memory, append(list, m))
}

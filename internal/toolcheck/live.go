package toolcheck

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/coppice-run/coppice/internal/file"
	"github.com/coppice-run/coppice/internal/file/temp"
	"github.com/coppice-run/coppice/internal/toolproc"
	"github.com/coppice-run/coppice/internal/toolspec"
	"github.com/coppice-run/coppice/messages"
)

// live are the checks that one process serves.
func (c *checker) live(ctx context.Context) {
	temp, err := temp.Make("validate")
	if err != nil {
		c.step(ToolSpawns, func() (Status, string, []string) { return Fail, err.Error(), nil })
		return
	}
	defer func() { _ = os.RemoveAll(temp) }()
	c.temp = temp
	if !c.step(ToolSpawns, func() (Status, string, []string) { return c.spawns(ctx) }) {
		return
	}
	defer func() {
		_ = c.proc.Stop(context.WithoutCancel(ctx), -1) // does nothing after a clean end
		c.r.SpawnLog = c.proc.Stderr()
	}()
	drift := c.step(SchemaMatchesDisk, c.matches)
	if !drift || !c.step(SampleRunSucceeds, func() (Status, string, []string) { return c.sample(ctx) }) {
		return
	}
	if !c.step(OutputConforms, c.conforms) || !c.step(StreamingCheck, c.streaming) {
		return
	}
	if !c.step(ReferenceFixturesMatch, func() (Status, string, []string) { return c.references(ctx) }) {
		return
	}
	c.step(CleanShutdown, func() (Status, string, []string) { return c.shutdown(ctx) })
}

func (c *checker) spawns(ctx context.Context) (Status, string, []string) {
	p, err := toolproc.Start(ctx, toolproc.Options{
		Tool: c.entry.Tool, Dir: c.entry.Dir, Env: c.o.Env, Artifacts: c.temp, StartTimeout: c.o.StartTimeout, Validate: true,
	})
	if err != nil {
		message, details := err.Error(), []string(nil)
		if failed, ok := errors.AsType[*toolproc.StartError](err); ok {
			c.r.SpawnLog = failed.Tail
			if failed.Hint != "" {
				details = append(details, failed.Hint)
			}
			details = append(details, lastLines(failed.Tail, 5)...)
		}
		return Fail, message, details
	}
	c.proc = p
	message := fmt.Sprintf("healthy after %v", p.Took().Round(time.Millisecond))
	if ignored := p.Ignored(); len(ignored) > 0 {
		return Warn, message + "; .env sets names that are reserved: " + strings.Join(ignored, ", "), nil
	}
	if missing := p.MissingSecrets(); len(missing) > 0 {
		return Warn, message + "; secrets are not set: " + strings.Join(missing, ", "), nil
	}
	return Pass, message, nil
}

func lastLines(text string, n int) []string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if text == "" {
		return nil
	}
	return lines[max(0, len(lines)-n):]
}

func (c *checker) matches() (Status, string, []string) {
	if drift := c.proc.Drift(); len(drift) > 0 {
		return Fail, fmt.Sprintf("/schema and tool.json differ in %d places; change both together", len(drift)), drift
	}
	return Pass, "/schema is tool.json", nil
}

func (c *checker) sample(ctx context.Context) (Status, string, []string) {
	inputs, err := json.Marshal(c.entry.Tool.Sample())
	if err != nil {
		return Fail, err.Error(), nil
	}
	c.r.SampleInputs = inputs
	began := time.Now()
	c.sampled = c.call(ctx, inputs, c.sampleLimit(), func(messages.ToolEvent) error {
		if c.first == 0 {
			c.first = max(time.Since(began), 1)
		}
		return nil
	})
	c.r.SampleOutput = c.sampled.Outputs
	took := time.Since(began).Round(time.Millisecond)
	if e := c.sampled.Error; e != nil && e.Kind != messages.ToolErrorOutput {
		details := lastLines(e.Stderr, 5)
		if e.Hint != "" {
			details = append([]string{e.Hint}, details...)
		}
		return Fail, e.Message, details
	}
	return Pass, fmt.Sprintf("the sample inputs ran in %v", took), nil
}

func (c *checker) conforms() (Status, string, []string) {
	if e := c.sampled.Error; e != nil {
		return Fail, e.Message, []string{e.Hint}
	}
	if w := c.sampled.Warnings; len(w) > 0 {
		return Warn, w[0], w[1:]
	}
	return Pass, "the outputs are those of tool.json", nil
}

func (c *checker) streaming() (Status, string, []string) {
	switch {
	case !c.entry.Tool.Streams():
		return Skip, "no output streams", nil
	case c.first == 0:
		return Fail, "the stream had no event", nil
	case c.first > firstByte:
		return Fail, fmt.Sprintf("the first event came after %v; %v are allowed", c.first.Round(time.Millisecond), firstByte), nil
	default:
		return Pass, fmt.Sprintf("the first event came after %v", c.first.Round(time.Millisecond)), nil
	}
}

func (c *checker) references(ctx context.Context) (Status, string, []string) {
	files, err := fixtures(c.entry.Dir)
	if err != nil {
		return Fail, err.Error(), nil
	}
	if len(files) == 0 {
		return Skip, "there is no file in the folder reference", nil
	}
	end := time.Now().Add(fixtureBudget)
	for i, name := range files {
		left := time.Until(end)
		if left <= 0 {
			return Warn, fmt.Sprintf("only %d of %d fixtures were run within %v", i, len(files), fixtureBudget), nil
		}
		if problem, details := c.reference(ctx, name, min(left, c.sampleLimit())); problem != "" {
			return Fail, name + ": " + problem, details
		}
	}
	return Pass, fmt.Sprintf("fixtures that match: %d", len(files)), nil
}

func (c *checker) reference(ctx context.Context, name string, limit time.Duration) (problem string, details []string) {
	data, err := file.Read(ctx, filepath.Join(c.entry.Dir, "reference", name), maxFixture)
	if err != nil {
		return err.Error(), nil
	}
	var f fixture
	if err := json.Unmarshal(data, &f); err != nil || len(f.Outputs) == 0 {
		return `it is not an object with "inputs" and "outputs"`, nil
	}
	a := c.call(ctx, f.Inputs, limit, nil)
	if a.Error != nil {
		return a.Error.Message, nil
	}
	diff, err := toolspec.DiffOutputs(f.Outputs, a.Outputs, maxDetails)
	switch {
	case err != nil:
		return err.Error(), nil
	case len(diff) > 0:
		return "the outputs are not those of the reference", toolspec.Lines(diff, maxDetails)
	default:
		return "", nil
	}
}

func (c *checker) shutdown(ctx context.Context) (Status, string, []string) {
	began := time.Now()
	err := c.proc.Stop(ctx, shutdownGrace)
	took := time.Since(began)
	switch {
	case err != nil:
		return Fail, err.Error(), nil
	case took >= shutdownGrace:
		return Warn, fmt.Sprintf("it did not end within %v of the request, and was killed", shutdownGrace), nil
	default:
		return Pass, fmt.Sprintf("it ended after %v", took.Round(time.Millisecond)), nil
	}
}

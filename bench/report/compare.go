package report

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"

	"golang.org/x/perf/benchmath"

	"github.com/coppice-run/coppice/bench/record"
)

const (
	alpha     = 0.05
	smallest  = 0.05 // differences below this share do not matter
	minRounds = 6    // with fewer no difference could be significant after the correction
)

// judged are the metrics whose differences are judged. The others, tails above
// all, are shown: they vary too much to say anything in a few rounds.
var judged = []string{"p50", "back-to-back-p50", "first-result-p50", "throughput", "process-memory", "all"}

// Verdict is what a comparison says of one metric.
type Verdict string

// The verdicts.
const (
	Same   Verdict = "no significant change"
	Better Verdict = "better"
	Worse  Verdict = "worse"
	// Unjudged: too few rounds, or a metric that is only shown.
	Unjudged Verdict = ""
)

// Difference is one metric in two files.
type Difference struct {
	Name, Metric, Unit string
	// Old and New are medians as they were measured.
	Old, New float64
	// Change is the relative difference of the medians after division by the
	// floor: .2 says that New is a fifth larger.
	Change float64
	// P is the corrected probability that chance alone made it, 1 when it was not
	// judged.
	P       float64
	Rounds  [2]int
	Verdict Verdict
}

// Compare compares what two files have in common. Rounds that were measured in turns
// are compared one by one, as they were measured: the machine was the same for both.
// Others are divided by their floors, and compared as a whole.
func Compare(before, after record.File) []Difference {
	a, b := samples(before), samples(after)
	inTurns := before.Plan.Turns && after.Plan.Turns
	var out []Difference
	var tests []int // indexes into out
	for _, k := range keys(before) {
		s, ok := b[k.id()]
		if !ok {
			continue
		}
		f := a[k.id()]
		d := Difference{
			Name: k.name, Metric: k.metric.Name, Unit: k.metric.Unit, Old: median(f.raw), New: median(s.raw),
			Change: change(median(f.scaled), median(s.scaled)), P: 1, Rounds: [2]int{len(f.raw), len(s.raw)},
		}
		pairs := ratios(f, s)
		if inTurns {
			d.Change = math.Exp(median(pairs)) - 1
		}
		switch {
		case !slices.Contains(judged, k.metric.Name) || min(len(f.raw), len(s.raw)) < minRounds || inTurns && len(pairs) < minRounds:
		case inTurns:
			d.P = signedRank(pairs)
			tests = append(tests, len(out))
		default:
			d.P = benchmath.AssumeNothing.Compare(benchmath.NewSample(f.scaled, &benchmath.DefaultThresholds), benchmath.NewSample(s.scaled, &benchmath.DefaultThresholds)).P
			tests = append(tests, len(out))
		}
		out = append(out, d)
	}
	holm(out, tests)
	for _, i := range tests {
		d := &out[i]
		better := a[d.Name+" "+d.Metric].better
		switch {
		case d.P >= alpha || math.Abs(d.Change) < smallest:
			d.Verdict = Same
		case (d.Change < 0) == (better == record.Less):
			d.Verdict = Better
		default:
			d.Verdict = Worse
		}
	}
	return out
}

// holm corrects the probabilities of the tests for their number.
func holm(all []Difference, tests []int) {
	order := slices.Clone(tests)
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(all[a].P, all[b].P) })
	least := 0.0
	for rank, i := range order {
		least = max(least, min(1, all[i].P*float64(len(order)-rank)))
		all[i].P = least
	}
}

// Worst returns the worst verdict, Same when nothing changed.
func Worst(all []Difference) Verdict {
	out := Same
	for _, d := range all {
		switch {
		case d.Verdict == Worse:
			return Worse
		case d.Verdict == Better:
			out = Better
		}
	}
	return out
}

// WriteComparison writes a table for people.
func WriteComparison(w io.Writer, all []Difference) error {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	line := func(cells ...string) { _, _ = fmt.Fprintln(t, strings.Join(cells, "\t")) } // Flush tells
	line("scenario", "metric", "before", "after", "change", "p", "rounds", "verdict")
	for _, d := range all {
		p := ""
		if d.Verdict != Unjudged {
			p = fmt.Sprintf("%.3f", d.P)
		}
		line(d.Name, d.Metric, number(d.Old)+" "+d.Unit, number(d.New)+" "+d.Unit, fmt.Sprintf("%+.1f %%", 100*d.Change), p, fmt.Sprintf("%d/%d", d.Rounds[0], d.Rounds[1]), string(d.Verdict))
	}
	if err := t.Flush(); err != nil {
		return fmt.Errorf("write the comparison: %w", err)
	}
	return nil
}

// key names one metric of one scenario.
type key struct {
	name   string
	metric record.Metric
}

func (k key) id() string { return k.name + " " + k.metric.Name }

// keys lists the metrics of a file that can be compared, in its order.
func keys(f record.File) []key {
	var out []key
	seen := map[string]bool{}
	for _, r := range f.Results {
		for _, m := range r.Metrics {
			k := key{r.Name(), m}
			if r.Error == "" && m.Better != record.None && !seen[k.id()] {
				seen[k.id()] = true
				out = append(out, k)
			}
		}
	}
	return out
}

// series is a metric over the rounds of a file.
type series struct {
	raw, scaled []float64
	round       []int // of each
	better      record.Better
}

func samples(f record.File) map[string]series {
	out := map[string]series{}
	for _, r := range f.Results {
		if r.Error != "" {
			continue
		}
		for _, m := range r.Metrics {
			id := key{r.Name(), m}.id()
			s := out[id]
			s.better = m.Better
			s.raw = append(s.raw, m.Value)
			s.round = append(s.round, r.Round)
			s.scaled = append(s.scaled, scale(m, r.Floor))
			out[id] = s
		}
	}
	return out
}

// ratios are the logarithms of after by before, for the rounds that both have.
func ratios(before, after series) []float64 {
	var out []float64
	for i, round := range before.round {
		if j := slices.Index(after.round, round); j >= 0 && before.raw[i] > 0 && after.raw[j] > 0 {
			out = append(out, math.Log(after.raw[j]/before.raw[i]))
		}
	}
	return out
}

// maxExact bounds the differences of which all signs are tried: a million times at most.
const maxExact = 20

// signedRank is Wilcoxon's signed-rank test: the probability that differences which have
// each sign by chance are as far to one side as these. It tries all signs, with the latest
// of the differences where there are too many for that.
func signedRank(differences []float64) float64 {
	d := differences[max(0, len(differences)-maxExact):]
	rank := make([]float64, len(d))
	sum := 0.0
	for i, x := range d {
		for _, y := range d { // equal ones share the mean of their ranks
			switch {
			case math.Abs(y) < math.Abs(x):
				rank[i]++
			case math.Abs(y) == math.Abs(x):
				rank[i] += .5
			}
		}
		rank[i] += .5
		if x != 0 {
			sum += math.Copysign(rank[i], x)
		}
	}
	as, all := 0, 1<<len(d)
	for signs := range all {
		s := 0.0
		for i, r := range rank {
			if d[i] == 0 {
				continue
			}
			if signs>>i&1 == 0 {
				r = -r
			}
			s += r
		}
		if math.Abs(s) >= math.Abs(sum)-1e-9 {
			as++
		}
	}
	return float64(as) / float64(all)
}

// scale divides times by the floor, and multiplies rates by it.
func scale(m record.Metric, floor float64) float64 {
	if floor <= 0 {
		return m.Value
	}
	switch m.Unit {
	case "us", "ms", "s":
		return m.Value / floor
	case "1/s", "MiB/s":
		return m.Value * floor
	default:
		return m.Value
	}
}

func median(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(v))
	if n := len(s); n%2 == 0 {
		return (s[n/2-1] + s[n/2]) / 2
	}
	return s[len(s)/2]
}

func change(before, after float64) float64 {
	if before == 0 {
		return 0
	}
	return after/before - 1
}

// Quantity writes a value with its unit for people: microseconds become ms or s
// where they are many.
func Quantity(v float64, unit string) string {
	switch {
	case unit == "us" && math.Abs(v) >= 1e6, unit == "ms" && math.Abs(v) >= 1e4:
		if unit == "us" {
			v /= 1000
		}
		return number(v/1000) + " s"
	case unit == "us" && math.Abs(v) >= 1000:
		return number(v/1000) + " ms"
	case strings.HasPrefix(unit, "KiB") && math.Abs(v) >= 10*1024:
		return grouped(v/1024) + " MiB" + strings.TrimPrefix(unit, "KiB")
	case strings.HasPrefix(unit, "1/"):
		return grouped(v) + strings.TrimPrefix(unit, "1")
	case strings.HasPrefix(unit, "/"):
		return grouped(v)
	}
	return strings.TrimSpace(grouped(v) + " " + unit)
}

// number writes three significant digits, without an exponent.
func number(v float64) string {
	switch a := math.Abs(v); {
	case v == math.Trunc(v) && a < 1e15:
		return fmt.Sprintf("%.0f", v)
	case a >= 100:
		return fmt.Sprintf("%.0f", v)
	case a >= 10:
		return fmt.Sprintf("%.1f", v)
	default:
		return fmt.Sprintf("%.2f", v)
	}
}

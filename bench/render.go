package bench

import (
	"bytes"
	"fmt"
	"strings"

	"golang.org/x/perf/benchfmt"
)

// stat writes all samples in the format of Go benchmarks, a line for each round: benchstat compares two such files.
func (r *Report) stat() ([]byte, error) {
	var b bytes.Buffer
	w := benchfmt.NewWriter(&b)
	for _, p := range r.Parts {
		for _, f := range p.Figures {
			for _, v := range f.Samples {
				res := &benchfmt.Result{
					Config: []benchfmt.Config{
						{Key: "pkg", Value: []byte("github.com/weir-edge/weir/bench"), File: true},
						{Key: "revision", Value: []byte(r.Revision), File: true},
						{Key: "machine", Value: []byte(r.Machine), File: true},
					},
					Name: benchfmt.Name(f.benchmark(p.Name)), Iters: 1, Values: []benchfmt.Value{{Value: v, Unit: f.Unit}},
				}
				if err := w.Write(res); err != nil {
					return nil, err
				}
			}
		}
	}
	return b.Bytes(), nil
}

// benchstat is the command that compares two files of stat. Runs differ by revision, and would each get a table of
// their own.
const benchstat = "go run golang.org/x/perf/cmd/benchstat -ignore revision,machine"

// besides tells how a peer is measured.
const besides = "Pools of equal size behind equal uplinks, with the same clients, saw the same changes of one " +
	"kube-apiserver at the same time: " +
	"hub has Weir, direct nothing, and reference is one protobuf informer for each resource, alone. Requests were timed " +
	"with a wide link."

// Markdown renders the report: what was missed first, then a table for each part.
func (r *Report) Markdown() string {
	var b strings.Builder
	met, judged := 0, 0
	var missed []string
	for _, p := range r.Parts {
		for _, f := range p.Figures {
			if f.Limit == nil {
				continue
			}
			judged++
			if f.Met() {
				met++
				continue
			}
			missed = append(missed, fmt.Sprintf("- **%s**: %.3g %s, wanted %s", f.Name, f.Got(), f.Unit, f.Limit))
		}
	}
	switch {
	case r.Peer == nil && judged == 0:
		b.WriteString("# Benchmarks\n\nNo figure has a target. ")
	case r.Peer == nil:
		fmt.Fprintf(&b, "# Benchmarks\n\n%d of %d figures within their target. ", met, judged)
	default:
		fmt.Fprintf(&b, "# %s beside Weir\n\n%s\n\n", r.Peer.Name, strings.TrimSpace(r.Peer.About+" "+besides))
	}
	fmt.Fprintf(&b, "Revision %s, %s, %s. Repeat: `%s`.\n\n", r.Revision, r.Began.Format("2006-01-02"), r.Machine,
		r.Repeat)
	b.WriteString("Each figure is the median of its rounds; behind it stands the interval in which the median lies, " +
		"with 95 % of confidence from 6 rounds on, " +
		"from the least to the most of fewer.")
	if r.Peer == nil {
		b.WriteString(" `" + benchstat + " reports/bench/bench.txt reports/out/bench/bench.txt` compares two runs.")
	}
	b.WriteString("\n")
	if len(missed) > 0 {
		fmt.Fprintf(&b, "\nMissed:\n\n%s\n", strings.Join(missed, "\n"))
	}
	for _, p := range r.Parts {
		fmt.Fprintf(&b, "\n## %s\n\n%s. Measured in %.0f s, load of the machine %.1f when it began and %.1f when "+
			"it ended.\n\n", p.Name, about(p.Name), p.Seconds, p.Load[0], p.Load[1])
		b.WriteString("| figure | median | spread | target | met | of |\n| --- | ---: | --- | ---: | --- | --- |\n")
		for _, f := range p.Figures {
			limit, verdict, source := "–", "–", f.Detail
			if f.Limit != nil {
				limit, verdict = f.Limit.String(), "yes"
				source = strings.TrimPrefix(f.Detail+"; target: "+f.Limit.Source, "; ")
			}
			if !f.Met() {
				verdict = "**no**"
			}
			fmt.Fprintf(&b, "| %s | %.3g %s | %s | %s | %s | %s |\n", f.Name, f.Got(), f.Unit, f.spread(), limit, verdict,
				source)
		}
	}
	return b.String()
}

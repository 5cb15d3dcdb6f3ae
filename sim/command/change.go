package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/weir-edge/weir/impl/cli"
	"github.com/weir-edge/weir/impl/commands"
	"github.com/weir-edge/weir/impl/disk"
	"github.com/weir-edge/weir/sim/card"
	"github.com/weir-edge/weir/sim/change"
	"github.com/weir-edge/weir/sim/parts"
	"github.com/weir-edge/weir/sim/proc/gobuild"
	"github.com/weir-edge/weir/sim/report"
	"github.com/weir-edge/weir/sim/scenario"
	"github.com/weir-edge/weir/sim/timeline"
)

// The scenarios of a report.
var (
	quickScenarios = []string{"pool-cache", "leader-kill"}
	allScenarios   = []string{
		"pool-cache", "leader-kill", "coordinator-restart", "glitch", "coordinator-lost", "leader-freeze", "pool-quiet",
		"storm",
	}
)

type changeFlags struct {
	base, out, bands string
	quick, always    bool
	only             []string
}

// parts of a report.
var changeParts = []string{"card", "scenarios"}

// reportChange measures what a change does, against its base.
func reportChange(fs *pflag.FlagSet) commands.Run {
	var f changeFlags
	fs.StringVar(&f.base, "base", "",
		"revision to compare with; default: where the branch left main, or the last commit before uncommitted changes")
	fs.StringVar(&f.out, "out", "reports/out/change", "folder of report.md, report.html, report.json, junit.xml and "+
		change.PictureFile)
	fs.StringVar(&f.bands, "bands", defaultBands, "what figures differ by from themselves, as report bands writes it")
	fs.BoolVar(&f.quick, "quick", false,
		"the card and the quickest scenarios, some ten minutes on two processors; without it an hour")
	fs.BoolVar(&f.always, "always", false, "measure also where no code differs: for report bands")
	fs.StringSliceVar(&f.only, "only", nil,
		"measure some parts only, separated by commas: "+strings.Join(changeParts, ", "))
	return func(ctx context.Context, _ []string, stdout, stderr io.Writer) error {
		for _, p := range f.only {
			if !slices.Contains(changeParts, p) {
				return cli.Usage("--only", p, "some of "+strings.Join(changeParts, ","))
			}
		}
		bands, err := loadBands(f.bands)
		if err != nil {
			return err
		}
		root, err := gobuild.Root("")
		if err != nil {
			return err
		}
		m := &changing{changeFlags: f, root: root, say: saying(stderr, time.Now()), stdout: stdout, stderr: stderr}
		if m.out, err = filepath.Abs(f.out); err != nil {
			return err
		}
		lock, err := disk.Take(m.out)
		if err != nil {
			return fmt.Errorf("--out: %w", err)
		}
		defer func() { _ = lock.Release() }() // it ends with the process
		r, err := m.measure(ctx, bands)
		if err != nil {
			return err
		}
		r.Finish(bands)
		return writeChange(f.out, r, stdout)
	}
}

// changing is a report under way.
type changing struct {
	changeFlags

	root           string
	say            func(string)
	stdout, stderr io.Writer
	repo           repository
	report         change.Report
}

func (m *changing) wants(part string) bool { return len(m.only) == 0 || slices.Contains(m.only, part) }

func (m *changing) measure(ctx context.Context, bands change.Bands) (r *change.Report, err error) {
	began := time.Now()
	m.repo = repository{m.root}
	r = &m.report
	r.Began, r.Quick, r.Machine = began.UTC().Truncate(time.Second), m.quick, machine()
	defer func() { m.report.Seconds = time.Since(began).Seconds() }()
	base, err := m.repo.base(ctx, m.base)
	if err != nil {
		return nil, err
	}
	if r.Base, err = m.repo.side(ctx, base); err != nil {
		return nil, err
	}
	if r.Head, err = m.repo.head(ctx); err != nil {
		return nil, err
	}
	r.Command = "make report BASE=" + r.Base.Revision
	if m.quick {
		r.Command += " QUICK=1"
	}
	if r.Accepted, r.Notes, err = m.repo.accepted(ctx, r.Base.Revision); err != nil {
		return nil, err
	}
	different, err := m.repo.different(ctx, r.Base.Revision)
	if err != nil {
		return nil, err
	}
	if err := dropChange(m.out); err != nil {
		return nil, err
	}
	m.say(fmt.Sprintf("base %s, head %s, %d files of code or configuration differ", r.Base.Revision, r.Head.Revision,
		len(different)))
	product := slices.ContainsFunc(different, ofProduct)
	r.Identical = !product && !m.always
	product = product || m.always
	if len(different) == 0 && !m.always {
		return r, nil
	}
	dirs := map[string]string{change.SideHead: filepath.Join(m.out, "head", "bin")}
	if err := m.repo.build(ctx, m.root, dirs[change.SideHead], m.say); err != nil {
		return m.unfinished(ctx, "build the head: %w", err)
	}
	if product {
		tree := filepath.Join(m.out, "base", "source")
		if err := m.repo.checkout(ctx, r.Base.Revision, tree); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, m.repo.remove(context.WithoutCancel(ctx), tree)) }()
		dirs[change.SideBase] = filepath.Join(m.out, "base", "bin")
		if err := m.repo.build(ctx, tree, dirs[change.SideBase], m.say); err != nil {
			return m.unfinished(ctx, "build the base: %w", err)
		}
	}
	if err := ctx.Err(); err != nil {
		return m.unfinished(ctx, "%w", err)
	}
	if product && m.wants("card") {
		m.card(ctx, dirs)
	}
	if m.wants("scenarios") {
		if err := m.scenarios(ctx, dirs, bands); err != nil {
			return nil, err
		}
	}
	if ctx.Err() != nil {
		return nil, errInterrupted
	}
	return r, nil
}

var errInterrupted = errors.New("interrupted: there is no report")

// unfinished is a report that tells why there is nothing more in it.
func (m *changing) unfinished(ctx context.Context, format string, err error) (*change.Report, error) {
	if ctx.Err() != nil {
		return nil, errInterrupted
	}
	m.report.Unfinished = append(m.report.Unfinished, fmt.Errorf(format, err).Error())
	return &m.report, nil
}

// binaries of Weir in a folder.
func binaries(dir string) parts.Binaries {
	return parts.Binaries{
		parts.HubCommand:         filepath.Join(dir, parts.HubCommand),
		parts.CoordinatorCommand: filepath.Join(dir, parts.CoordinatorCommand),
	}
}

// card measures both sides beside one another. What cannot be measured is a note: the rest of the report still says
// something.
func (m *changing) card(ctx context.Context, dirs map[string]string) {
	c := card.Config{
		Base: binaries(dirs[change.SideBase]), Head: binaries(dirs[change.SideHead]),
		LogDir: filepath.Join(m.out, "card", "logs"), Progress: m.say,
		Repeat: m.report.Command + " ONLY=card",
	}
	if !m.quick {
		const each = change.LeastRounds * change.LeastSamples // so that times are judged, too
		c.Starts, c.Changes, c.Kills, c.Graces, c.Batches = each, 300, each, each, 30
	}
	if err := dropLogs(c.LogDir); err != nil {
		m.report.Unfinished = append(m.report.Unfinished, err.Error())
		return
	}
	figures, err := card.Measure(ctx, c)
	m.report.Figures = append(m.report.Figures, figures...)
	if err != nil {
		m.report.Unfinished = append(m.report.Unfinished,
			fmt.Sprintf("the card was not measured to its end: %v; logs in %s", err, c.LogDir))
	}
}

// confirming is in how many rounds at most a scenario is run before a figure of it is called worse.
const confirming = 3

// scenarios runs them with the testbed of the head and the commands of each side in turn. What seems to be worse after
// the rounds that all have is run again: one run of a scenario is one sample of what its processes take at most.
func (m *changing) scenarios(ctx context.Context, dirs map[string]string, bands change.Bands) error {
	names, rounds := quickScenarios, 1
	if !m.quick {
		names, rounds = allScenarios, 2
	}
	for _, name := range names {
		results := map[string][]report.Result{}
		file := filepath.Join(m.root, "scenarios", name+scenario.Extension)
		repeat := "make scenario NAME=" + name
		var figures []change.Figure
		for round := range confirming {
			if round >= rounds &&
				!slices.ContainsFunc(change.Judge(figures, bands), func(l change.Line) bool { return l.Verdict == change.Worse }) {
				break
			}
			if round >= rounds {
				m.say(fmt.Sprintf("scenario %s seems to be worse: once more", name))
			}
			for _, side := range []string{change.SideBase, change.SideHead} {
				if dirs[side] == "" {
					continue
				}
				res, run, err := m.scenario(ctx, file, side, dirs[side], round)
				if err != nil {
					return err
				}
				if ctx.Err() != nil {
					return errInterrupted
				}
				run.Repeat = repeat
				m.report.Runs = append(m.report.Runs, run)
				if res.Error == "" {
					results[side] = append(results[side], res)
				}
			}
			figures = change.ScenarioFigures(results[change.SideBase], results[change.SideHead], repeat)
		}
		if dirs[change.SideBase] != "" && len(figures) == 0 {
			m.report.Notes = append(m.report.Notes,
				"scenario "+name+" did not come to its end on both sides, so its figures were not compared")
		}
		m.report.Figures = append(m.report.Figures, figures...)
	}
	return nil
}

func (m *changing) scenario(ctx context.Context, file, side, dir string, round int) (report.Result, change.Run, error) {
	all, err := scenario.Load(file)
	if err != nil {
		return report.Result{}, change.Run{}, err
	}
	s := all[0]
	rel, err := filepath.Rel(m.root, file)
	if err != nil {
		rel = file
	}
	s.File = rel
	s.Expectations = slices.DeleteFunc(s.Expectations, scenario.Expectation.OfTime)
	f := scenarioFlags{
		out: filepath.Join(m.out, side, fmt.Sprintf("round-%d", round+1)), output: "text", runtime: "local", binaries: dir,
	}
	m.say(fmt.Sprintf("scenario %s, %s, round %d", s.Name, side, round+1))
	res, failed := runOne(ctx, s, f, io.Discard, io.Discard)
	if failed != nil {
		m.say(failed.Error())
	}
	if res.Scenario == "" {
		res.Scenario, res.Error = s.Name, fmt.Sprint(failed)
	}
	folder := filepath.Join(f.out, s.Name)
	shown := folder
	if rel, err := filepath.Rel(m.root, folder); err == nil && filepath.IsLocal(rel) {
		shown = rel
	}
	return res, change.NewRun(side, rel, shown, res, events(filepath.Join(folder, "timeline.jsonl"))), nil
}

// events of a timeline, as far as it can be read.
func events(path string) (all []timeline.Event) {
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	for e, err := range timeline.NewReader(f).All() {
		if err != nil {
			break
		}
		all = append(all, e)
	}
	return all
}

package attack

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/weir-edge/weir/sim/parts"
	"github.com/weir-edge/weir/sim/runtime"
)

// Verdict is what came of an attack.
type Verdict string

// The verdicts. Everything but Refused is a failure.
const (
	Refused      Verdict = "refused"
	Succeeded    Verdict = "SUCCEEDED"
	NoControl    Verdict = "no control" // it was refused, and so was who may do it: that proves nothing
	NotAttempted Verdict = "not attempted"
)

// Row is what is reported of an attack.
type Row struct {
	Number   string        `json:"number"`
	Position Position      `json:"position"`
	Goal     string        `json:"goal"`
	Sent     string        `json:"sent"`
	Expected string        `json:"expected"`
	Seen     string        `json:"seen"`
	Control  string        `json:"control"`
	Verdict  Verdict       `json:"verdict"`
	Review   string        `json:"atReview"` // the verdict at the revision that the reviews are of
	Took     time.Duration `json:"nanoseconds"`
}

// Options of a run.
type Options struct {
	LogDir   string         // of all parts; they are searched for secrets in the end
	Binaries parts.Binaries // of the product, instead of those of this source tree
	Parallel int            // places at once; 0 is 3
	Progress func(string)   // may be nil
}

// Run plays attacks, and returns a row for each in their order. The error says that nothing could be played, or not be
// cleaned up.
func Run(ctx context.Context, attacks []Attack, o Options) (rows []Row, err error) {
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	if o.Parallel == 0 {
		o.Parallel = 3
	}
	review, err := atReview()
	if err != nil {
		return nil, err
	}
	t, places := topology(attacks)
	audit, err := newAudit(o.LogDir)
	if err != nil {
		return nil, err
	}
	site, err := (&runtime.Local{LogDir: o.LogDir, Binaries: o.Binaries, APIServerArgs: audit.flags()}).Up(
		ctx, t, o.Progress,
	)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, site.Down(context.WithoutCancel(ctx))) }()
	s, err := newStage(ctx, site)
	if err != nil {
		return nil, err
	}
	s.audit = audit
	scenes := make([]*scene, len(attacks))
	for i, a := range attacks {
		scenes[i] = &scene{attack: a}
	}
	play := func(ctx context.Context, p *place) {
		var mine []*scene
		for _, x := range scenes {
			if x.attack.place.name == p.name {
				mine = append(mine, x)
			}
		}
		perform(ctx, s, p, mine, o.Progress)
	}
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(o.Parallel)
	for _, p := range places {
		if p != afterwards {
			g.Go(func() error { play(gctx, p); return nil })
		}
	}
	_ = g.Wait()
	if slices.Contains(places, afterwards) {
		play(ctx, afterwards)
	}
	for _, x := range scenes {
		row := x.row()
		row.Review = review[row.Number]
		rows = append(rows, row)
	}
	return rows, ctx.Err()
}

// perform plays all attacks of a place: first those with the cloud, then those without, which share one cut.
func perform(ctx context.Context, s *stage, p *place, scenes []*scene, progress func(string)) {
	all := func(err error) {
		for _, x := range scenes {
			x.fail(err)
		}
	}
	g, err := newGround(ctx, s, p)
	if err != nil {
		all(err)
		return
	}
	defer func() {
		if err := g.close(context.WithoutCancel(ctx)); err != nil {
			progress(fmt.Sprintf("%s: %v", p.name, err))
		}
	}()
	var away []*scene
	for _, x := range scenes {
		x.ground = g
		x.act(ctx, x.begin)
		if x.attack.away {
			away = append(away, x)
			continue
		}
		x.act(ctx, x.attempt)
		x.tell(progress)
	}
	if len(away) == 0 {
		return
	}
	if err := g.cut(ctx); err != nil {
		all(err)
		return
	}
	for _, x := range away {
		x.act(ctx, x.attempt)
	}
	if err := g.heal(ctx); err != nil {
		all(err)
	}
	for _, x := range away {
		x.act(ctx, x.end)
		x.tell(progress)
	}
}

// actPatience bounds one act of one attack.
const actPatience = 5 * time.Minute

// scene is an attack that is played.
type scene struct {
	attack Attack
	*ground

	mu         sync.Mutex
	seen       []string
	controlled []string
	succeeded  bool
	attempts   int
	controls   int
	lost       bool // a control failed
	err        error
	took       time.Duration
	kept       map[string]any // what an act leaves to the next one
}

func (x *scene) act(ctx context.Context, act func(context.Context) error) {
	if x.err != nil {
		return
	}
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, actPatience)
	defer cancel()
	x.fail(act(ctx))
	x.took += time.Since(began)
}

func (x *scene) fail(err error) {
	if x.err == nil && err != nil {
		x.err = err
	}
}

func (x *scene) begin(ctx context.Context) error {
	if x.attack.prepare != nil {
		if err := x.attack.prepare(ctx, x); err != nil {
			return fmt.Errorf("prepare: %w", err)
		}
	}
	for _, q := range x.attack.before {
		if a := x.insist(ctx, q); !a.right(q) {
			return fmt.Errorf("before: %s as %s: %s: %.200s", q, q.as, a, a.body)
		}
	}
	return nil
}

func (x *scene) attempt(ctx context.Context) error {
	for _, q := range x.attack.asks {
		for range max(q.times, 1) {
			x.try(ctx, q)
		}
	}
	if x.attack.play != nil {
		if err := x.attack.play(ctx, x); err != nil {
			return err
		}
	}
	for _, q := range x.attack.controls {
		x.check(ctx, q)
	}
	if x.attack.after == nil || !x.attack.away {
		return x.end(ctx)
	}
	return nil
}

func (x *scene) end(ctx context.Context) error {
	if x.attack.after == nil {
		return nil
	}
	return x.attack.after(ctx, x)
}

// try sends a request that has to be refused.
func (x *scene) try(ctx context.Context, q ask) {
	a := x.insist(ctx, q)
	x.judge(a.right(q), "%s: %s", q, a)
}

// check sends a request that has to be granted.
func (x *scene) check(ctx context.Context, q ask) {
	a := x.insist(ctx, q)
	if a.right(q) {
		x.control(true, "%s as %s: %s", q, q.as, a)
	} else {
		x.control(false, "%s as %s: %s %.300s", q, q.as, a, a.body)
	}
}

// judge notes an attempt and whether it was refused.
func (x *scene) judge(refused bool, format string, args ...any) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.attempts++
	line := fmt.Sprintf(format, args...)
	if !refused {
		x.succeeded = true
		line += " (!)"
	}
	x.seen = append(x.seen, line)
}

// note adds to what was seen.
func (x *scene) note(format string, args ...any) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.seen = append(x.seen, fmt.Sprintf(format, args...))
}

// control notes what came of what has to go well.
func (x *scene) control(well bool, format string, args ...any) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.controls++
	line := fmt.Sprintf(format, args...)
	if !well {
		x.lost = true
		line += " (!)"
	}
	x.controlled = append(x.controlled, line)
}

func (x *scene) verdict() Verdict {
	switch {
	case x.succeeded:
		return Succeeded
	case x.err != nil || x.attempts == 0:
		return NotAttempted
	case x.lost || x.controls == 0:
		return NoControl
	}
	return Refused
}

func (x *scene) row() Row {
	a := x.attack
	seen := join(x.seen)
	if x.err != nil {
		seen = join(append([]string{"error: " + x.err.Error()}, x.seen...))
	}
	return Row{
		Number: a.Number, Position: a.Position, Goal: a.Goal, Sent: a.Sent, Expected: a.Expected, Seen: seen,
		Control: a.Control + ": " + join(x.controlled), Verdict: x.verdict(), Took: x.took,
	}
}

func (x *scene) tell(progress func(string)) {
	r := x.row()
	progress(fmt.Sprintf("%-14s %-4s %s", r.Verdict, r.Number, r.Goal))
	if r.Verdict != Refused {
		progress(fmt.Sprintf("%-14s %-4s   seen: %s", "", "", r.Seen))
		progress(fmt.Sprintf("%-14s %-4s   control: %s", "", "", r.Control))
	}
}

// join joins lines, counting those that repeat.
func join(lines []string) string {
	var out []string
	for i := 0; i < len(lines); {
		n := i
		for n < len(lines) && lines[n] == lines[i] {
			n++
		}
		line := lines[i]
		if n-i > 1 {
			line = fmt.Sprintf("%d × %s", n-i, line)
		}
		out = append(out, line)
		i = n
	}
	slices.SortStableFunc(out, func(a, b string) int { // what is not as it has to be comes first
		wrong := func(s string) int { return strings.Count(s[max(0, len(s)-3):], "(!)") }
		return wrong(b) - wrong(a)
	})
	const many = 8
	if len(out) > many {
		out = append(out[:many], fmt.Sprintf("and %d more", len(out)-many))
	}
	return strings.Join(out, "; ")
}

package bench

import (
	"context"
	"errors"
	"testing"
)

// TestResume leaves out what was measured of the same source, and nothing else.
func TestResume(t *testing.T) {
	var ran []string
	failing := true
	parts := func(config string) []part {
		one := func(name string) part {
			return part{name: name, config: config, run: func(context.Context) ([]Figure, error) {
				ran = append(ran, name)
				if name == "a" && failing {
					return nil, errors.New("planted")
				}
				return []Figure{{Name: name, Unit: "ms", Samples: []float64{1}}}, nil
			}}
		}
		return []part{one("a"), one("b")}
	}
	s := Suite{Config: Config{Progress: func(string) {}}, Out: t.TempDir(), Resume: true, revision: "abc"}
	for _, step := range []struct {
		what             string
		config, revision string
		failing          bool
		want             int // parts that ran
	}{
		{"the first part fails, the second is measured all the same", "1", "abc", true, 2},
		{"it is resumed", "1", "abc", false, 1},
		{"all was measured", "1", "abc", false, 0},
		{"other flags", "2", "abc", false, 2},
		{"other source", "2", "abd", false, 2},
		{"source that is not committed is never the same", "2", "abd-dirty", false, 2},
		{"again", "2", "abd-dirty", false, 2},
	} {
		ran, failing, s.all, s.revision = nil, step.failing, parts(step.config), step.revision
		_, err := s.Run(t.Context())
		if len(ran) != step.want || (err != nil) != step.failing {
			t.Errorf("%s: %v ran, want %d of them; %v", step.what, ran, step.want, err)
		}
	}
}

// TestInterrupted: what was measured before, and what was measured since, is kept on disk when a run that was resumed
// is interrupted.
func TestInterrupted(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	fine := func(context.Context) ([]Figure, error) {
		return []Figure{{Name: "x", Unit: "ms", Samples: []float64{1}}}, nil
	}
	bad := func(context.Context) ([]Figure, error) { return nil, errors.New("planted") }
	s := Suite{Config: Config{Progress: func(string) {}}, Out: t.TempDir(), Resume: true, revision: "abc"}
	s.all = []part{{name: "a", run: bad}, {name: "b", run: fine}, {name: "c", run: bad}}
	if r, err := s.Run(ctx); err == nil || len(r.Parts) != 1 {
		t.Fatalf("%+v: %v", r.Parts, err)
	}
	s.all[0].run = fine
	s.all[2].run = func(ctx context.Context) ([]Figure, error) { interrupt(); return nil, ctx.Err() }
	if _, err := s.Run(ctx); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	r, err := Load(s.Out)
	if err != nil || len(r.Parts) != 2 {
		t.Errorf("%+v is kept: %v", r.Parts, err)
	}
}

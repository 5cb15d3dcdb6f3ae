package bench

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/weir-edge/weir/impl/cli"
)

// Suite is all benchmarks, one after another.
type Suite struct {
	Config
	Manager ManagerConfig
	// Only is the one part that is measured: one of Parts. Empty: all.
	Only string
}

type part struct {
	name string
	run  func(context.Context) ([]Line, error)
}

func (s Suite) parts() []part {
	return []part{
		{"store", func(ctx context.Context) ([]Line, error) { return Store(ctx, s.Config) }},
		{"hub", func(ctx context.Context) ([]Line, error) { return Run(ctx, s.Config) }},
		{"manager", func(ctx context.Context) ([]Line, error) {
			if s.Manager.Nodes == 0 {
				return nil, nil
			}
			return Manager(ctx, s.Manager)
		}},
	}
}

// Parts names what can be measured alone.
func Parts() (names []string) {
	for _, p := range (Suite{}).parts() {
		names = append(names, p.name)
	}
	return names
}

// Validate checks what flags gave; the error is a cli.UsageError.
func (s Suite) Validate() error {
	switch {
	case s.Only != "" && !slices.Contains(Parts(), s.Only):
		return cli.Usage("--only", s.Only, "one of "+strings.Join(Parts(), ", ")+"; without it all")
	case s.Rounds < 1:
		return cli.Usage("--rounds", s.Rounds, "at least 1")
	case s.Objects < 1:
		return cli.Usage("--objects", s.Objects, "at least 1")
	case s.Large < s.Objects:
		return cli.Usage("--large", s.Large, fmt.Sprintf("at least --objects, %d", s.Objects))
	}
	return s.Manager.validate()
}

// Run measures. Lines of parts that ended come with an error of a later one.
func (s Suite) Run(ctx context.Context) (lines []Line, err error) {
	for _, p := range s.parts() {
		if s.Only != "" && s.Only != p.name {
			continue
		}
		more, err := p.run(ctx)
		lines = append(lines, more...)
		if err != nil {
			return lines, fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return lines, nil
}

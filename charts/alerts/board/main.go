// Command board draws the dashboard of the chart with what a scenario's processes told: it starts the scenario, asks
// their /metrics each second, as a Prometheus would, gives the answers to Prometheus' own storage and engine, evaluates
// each panel, and draws all of them as Grafana lays them out.
//
//	make dashboard
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"time"

	"github.com/prometheus/prometheus/model/rulefmt"
)

const every = time.Second // between two scrapes, and for one answer

func main() {
	dashboard := flag.String("dashboard", "charts/weir/monitoring/dashboard.json", "the dashboard, as Grafana reads it")
	rules := flag.String("rules", "charts/weir/monitoring/rules.yaml", "rules, of which those that record are evaluated")
	out := flag.String("out", "docs/dashboard.svg", "the picture")
	flag.Usage = func() {
		fmt.Fprintf(flag.CommandLine.Output(),
			"board [flags] -- COMMAND…: draw the dashboard with what processes told while COMMAND ran\n")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() == 0 {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, *dashboard, *rules, *out, flag.Args())
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "board:", err)
		os.Exit(1)
	}
}

// board is what of a dashboard is drawn.
type board struct {
	Title  string  `json:"title"`
	Panels []panel `json:"panels"`
}

type panel struct {
	Title   string                   `json:"title"`
	Type    string                   `json:"type"`
	GridPos struct{ X, Y, W, H int } `json:"gridPos"`
	Field   struct {
		Defaults struct{ Unit string } `json:"defaults"`
	} `json:"fieldConfig"`
	Targets []struct {
		Expr   string `json:"expr"`
		Legend string `json:"legendFormat"`
	} `json:"targets"`
}

func run(ctx context.Context, dashboard, rules, out string, command []string) error {
	text, err := os.ReadFile(dashboard)
	if err != nil {
		return err
	}
	var b board
	if err := json.Unmarshal(text, &b); err != nil {
		return fmt.Errorf("%s: %w", dashboard, err)
	}
	recorded, err := recording(rules)
	if err != nil {
		return err
	}
	s, err := open()
	if err != nil {
		return err
	}
	defer s.close()
	work := exec.CommandContext(ctx, command[0], command[1:]...)
	work.Stdout, work.Stderr = os.Stderr, os.Stderr
	work.Cancel = func() error { return work.Process.Signal(os.Interrupt) }
	began := time.Now()
	if err := work.Start(); err != nil {
		return err
	}
	scraping, done := context.WithCancel(ctx)
	failed := make(chan error, 1)
	go func() { failed <- s.scrape(scraping) }()
	err = work.Wait()
	done()
	if err := errors.Join(err, <-failed); err != nil {
		return err
	}
	if s.first.IsZero() {
		return fmt.Errorf("nothing answered /metrics while %s ran, from %s on", command[0], began.Format(time.TimeOnly))
	}
	e := evaluator{store: s, recorded: recorded}
	picture, err := draw(ctx, &b, &e)
	if err != nil {
		return err
	}
	return os.WriteFile(out, picture, 0o644)
}

// recording are the rules that record, by name.
func recording(path string) (map[string]string, error) {
	groups, errs := rulefmt.ParseFile(path, false, scheme, grammar, quiet)
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	all := map[string]string{}
	for _, g := range groups.Groups {
		for _, r := range g.Rules {
			if r.Record != "" {
				all[r.Record] = "(" + r.Expr + ")"
			}
		}
	}
	return all, nil
}

package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/weir-edge/weir/bench/peer"
	"github.com/weir-edge/weir/impl/cli"
)

// Command is that of weir which measures. With these flags it is a process of a benchmark that is under way: ServeBare
// and OpenStore.
const (
	Command       = "bench"
	ServeBareFlag = "serve-bare"
	OpenStoreFlag = "open-store"
)

// Suite is all benchmarks, one after another.
type Suite struct {
	Config
	Manager ManagerConfig
	Testbed Testbed
	Out     string // folder of the report
	// Only are the parts that are measured, of Parts. Empty: all.
	Only []string
	// Resume leaves out what the report in Out has of the same source.
	Resume bool
	// Peer is another hub, which is measured beside Weir's, and nothing else is.
	Peer *peer.Profile
	// Repeat is the command line that measures the same again, for the report.
	Repeat string

	all      []part // of tests; nil: those of parts
	revision string // likewise; empty: that of the source
}

type part struct {
	name   string
	about  string // one sentence without its point
	config string // what its figures depend on
	run    func(context.Context) ([]Figure, error)
}

func (p part) measure(ctx context.Context) (m Measured, err error) {
	m = Measured{Name: p.name, Config: p.config, Load: [2]float64{load(), 0}}
	since := time.Now()
	m.Figures, err = p.run(ctx)
	m.Seconds, m.Load[1] = time.Since(since).Seconds(), load()
	return m, err
}

func (s Suite) parts() []part {
	if s.all != nil {
		return s.all
	}
	rounds := fmt.Sprintf("rounds %d", s.Rounds)
	pools := fmt.Sprintf("rounds %d, %d at once", s.Testbed.Rounds, s.Testbed.Parallel)
	if p := s.Peer; p != nil {
		return []part{{peerPart, "", fmt.Sprintf("%s, %s, rounds of changes %d", p.Name, rounds, s.Testbed.Rounds),
			func(ctx context.Context) ([]Figure, error) { return Rival(ctx, s.Testbed, p, s.Rounds) }}}
	}
	return []part{
		{"bytes", "What crosses the uplink of a pool: stock, with a hub on each node, and with hubs that are a pool", pools,
			func(ctx context.Context) ([]Figure, error) { return Traffic(ctx, s.Testbed) }},
		{"failover", "How long a pool that lost something leaves the cloud alone, and how soon service is normal", pools,
			func(ctx context.Context) ([]Figure, error) { return Failover(ctx, s.Testbed) }},
		{"certificates", "What the certificates of a node cost its uplink", rounds,
			func(ctx context.Context) ([]Figure, error) { return Certificates(ctx, s.Rounds, s.Testbed.Progress) }},
		{"directory", "What reaches an edge node when the status of its NodePool changes, in a pool of 200 nodes", "",
			func(ctx context.Context) ([]Figure, error) { return Directory(ctx, s.Testbed.Progress) }},
		{"cache", "How soon a pool's cache is there, and what crosses the uplink until then", rounds,
			func(ctx context.Context) ([]Figure, error) { return Cache(ctx, s.Testbed, s.Rounds) }},
		{"store", "What the store of a hub writes, and how soon a new process answers from a large one", rounds,
			func(ctx context.Context) ([]Figure, error) { return Store(ctx, s.Config) }},
		{
			"hub", "What hub and coordinator cost beside kube-apiserver, with the same objects, clients and TLS",
			fmt.Sprintf("%s, objects %d, large %d", rounds, s.Objects, s.Large),
			func(ctx context.Context) ([]Figure, error) { return Run(ctx, s.Config) },
		},
		{"images", "What a hub costs that is a mirror of registries: idle, and while four members read 1 GB each", rounds,
			func(ctx context.Context) ([]Figure, error) { return Images(ctx, s.Config) }},
		{"changes", "What a change costs from one relay of a pool to others, as a difference and as a whole object", rounds,
			func(ctx context.Context) ([]Figure, error) { return Changes(ctx, s.Rounds, s.Testbed.Progress) }},
		{"followers", "What it costs a gate that many pools read there", rounds,
			func(ctx context.Context) ([]Figure, error) { return Followers(ctx, s.Rounds, s.Testbed.Progress) }},
		{"passed", "What a get costs that a hub passes to the cloud, beside a bare httputil.ReverseProxy", rounds,
			func(ctx context.Context) ([]Figure, error) { return Passed(ctx, s.Config) }},
		{"watches", "What 400 watches of one account cost a hub, and all others on its node", rounds,
			func(ctx context.Context) ([]Figure, error) {
				return ManyWatches(ctx, s.Rounds, s.Testbed.Progress)
			}},
		{"manager", "What weir-manager costs in a large cluster", s.Manager.text(),
			func(ctx context.Context) ([]Figure, error) {
				if s.Manager.Nodes == 0 {
					return nil, nil
				}
				return Manager(ctx, s.Manager)
			}},
	}
}

// peerPart is what is measured with Suite.Peer.
const peerPart = "peer"

func about(name string) string {
	if name == peerPart {
		return "Each figure is a ratio of two sides; what the two medians were stands behind it"
	}
	for _, p := range (Suite{}).parts() {
		if p.name == name {
			return p.about
		}
	}
	return name
}

// Parts names what can be measured alone.
func Parts() (names []string) {
	for _, p := range (Suite{}).parts() {
		names = append(names, p.name)
	}
	return names
}

// List tells of each part what it measures, a line each.
func List() string {
	var b strings.Builder
	for _, p := range (Suite{}).parts() {
		fmt.Fprintf(&b, "%-13s %s.\n", p.name, p.about)
	}
	return b.String()
}

// Validate checks what flags gave; the error is a cli.UsageError.
func (s Suite) Validate() error {
	for _, name := range s.Only {
		if !slices.Contains(Parts(), name) {
			return cli.Usage("--only", name, "some of "+strings.Join(Parts(), ",")+"; without it all")
		}
	}
	if s.Peer != nil && len(s.Only) > 0 {
		return cli.Usage("--only", strings.Join(s.Only, ","), "nothing beside --peer, which measures the peer and no part")
	}
	switch {
	case s.Rounds < 1:
		return cli.Usage("--rounds", s.Rounds, "at least 1")
	case s.Objects < 1:
		return cli.Usage("--objects", s.Objects, "at least 1")
	case s.Large < s.Objects:
		return cli.Usage("--large", s.Large, fmt.Sprintf("at least --objects, %d", s.Objects))
	}
	if err := s.Testbed.validate(); err != nil {
		return err
	}
	return s.Manager.validate()
}

// Run measures and writes the report, again after each part. A part that fails keeps none of the others from being
// measured. The error tells which parts failed, and has a *MissedError in it if a figure misses its target.
func (s Suite) Run(ctx context.Context) (r Report, err error) {
	if r = newReport(ctx); s.revision != "" {
		r.Revision = s.revision
	}
	r.Repeat = s.Repeat
	if err := os.MkdirAll(s.Out, 0o755); err != nil { // before an hour is measured for nothing
		return r, cli.Usage("--out", s.Out, "a folder that the report can be written to: "+err.Error())
	}
	if s.Peer != nil {
		r.Peer = &PeerReport{Name: s.Peer.Name, About: s.Peer.About, Profile: s.Peer.Path()}
	}
	var old Report
	if s.Resume {
		if old, err = r.earlier(s.Out); err != nil {
			return r, err
		}
		if len(old.Parts) > 0 {
			r.Began = old.Began
		}
	}
	var failed error
	began, parts := time.Now(), s.parts()
	for i, p := range parts {
		m, ok := old.has(p.name, p.config)
		switch {
		case ok:
			s.Progress(fmt.Sprintf("part %s was measured before, at this revision", p.name))
		case len(s.Only) > 0 && !slices.Contains(s.Only, p.name):
			continue
		default:
			s.Progress(fmt.Sprintf("part %d of %d after %v: %s", i+1, len(parts), time.Since(began).Round(time.Second), p.name))
			if m, err = p.measure(ctx); err != nil {
				failed = errors.Join(failed, fmt.Errorf("part %s was not measured: %w", p.name, err))
				if ctx.Err() != nil {
					return r, failed
				}
				if len(parts) > 1 { // else the error comes at once
					s.Progress(fmt.Sprintf("%s: %v", p.name, err))
				}
				continue
			}
		}
		r.Parts = append(r.Parts, m)
		if err := r.Write(s.Out); err != nil {
			return r, err
		}
	}
	return r, errors.Join(failed, r.Judge())
}

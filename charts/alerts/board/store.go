package main

import (
	"bufio"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/tsdb"
)

const (
	scheme    = model.LegacyValidation
	maxAnswer = 16 << 20 // bytes of one /metrics
)

// ports are those at which parts of the testbed's pools tell metrics: weir-manager and hubs. Others are those of links,
// whose bytes are counted.
var ports = []uint64{8080, 10267}

// machines are addresses that the testbed gives to machines that are not at loopback ones.
var machines = netip.MustParsePrefix("198.18.0.0/15")

var (
	grammar = parser.NewParser(parser.Options{})
	quiet   = slog.New(slog.DiscardHandler)
)

// store is a Prometheus without rules: what was scraped, and when.
type store struct {
	dir         string
	db          *tsdb.DB
	first, last time.Time
}

func open() (*store, error) {
	dir, err := os.MkdirTemp("", "weir-board-")
	if err != nil {
		return nil, err
	}
	db, err := tsdb.Open(dir, quiet, nil, tsdb.DefaultOptions(), nil)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return &store{dir: dir, db: db}, nil
}

func (s *store) close() { _ = errors.Join(s.db.Close(), os.RemoveAll(s.dir)) }

// scrape asks all that listen where the testbed lets parts of pools listen, until ctx ends.
func (s *store) scrape(ctx context.Context) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		addresses, err := listeners()
		if err != nil {
			return err
		}
		for _, a := range addresses {
			if err := s.ask(ctx, a); err != nil && ctx.Err() == nil {
				return fmt.Errorf("metrics of %s: %w", a, err)
			}
		}
	}
}

// ask asks one. That it does not answer, or has no metrics, is no error.
func (s *store) ask(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, every)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/metrics", nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil // it speaks no plain HTTP, or has ended
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil || resp.StatusCode != http.StatusOK ||
		!strings.HasPrefix(resp.Header.Get("Content-Type"), "text/plain") {
		return nil
	}
	now := time.Now()
	p, err := textparse.New(text, resp.Header.Get("Content-Type"), labels.NewSymbolTable(),
		textparse.ParserOptions{FallbackContentType: "text/plain"})
	if err != nil {
		return err
	}
	add := s.db.Appender(ctx)
	for {
		entry, err := p.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return errors.Join(err, add.Rollback())
		}
		if entry != textparse.EntrySeries {
			continue
		}
		_, _, value := p.Series()
		var l labels.Labels
		p.Labels(&l)
		if _, err := add.Append(0, labels.NewBuilder(l).Set("instance", address).Labels(), now.UnixMilli(), value); err !=
			nil {
			return errors.Join(err, add.Rollback())
		}
	}
	if s.first.IsZero() {
		s.first = now
	}
	s.last = now
	return add.Commit()
}

// listeners are the addresses where parts tell metrics now.
func listeners() (all []string, err error) {
	f, err := os.Open("/proc/net/tcp")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) < 4 || fields[3] != "0A" {
			continue
		}
		ip, port, _ := strings.Cut(fields[1], ":")
		b, err := hex.DecodeString(ip)
		n, err2 := strconv.ParseUint(port, 16, 16)
		if err != nil || err2 != nil || len(b) != net.IPv4len || !slices.Contains(ports, n) {
			continue
		}
		if a := netip.AddrFrom4([4]byte{b[3], b[2], b[1], b[0]}); a.IsLoopback() || machines.Contains(a) {
			all = append(all, netip.AddrPortFrom(a, uint16(n)).String())
		}
	}
	return all, nil
}

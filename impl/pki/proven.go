package pki

import (
	"crypto/x509"
	"errors"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/disk"
)

// Proven is the time by which somebody judges certificates: its own clock, but never before the latest time that an
// authority has vouched for. A machine without a battery clock starts in 1970; then it goes on from that time, which is
// on its disk. A process that hears the cloud uses the cloud's clock instead of its own.
//
// What proves a time is signed: an authority does not sign a certificate before it begins. So a certificate that an
// authority vouches for proves that it was NotBefore once, and that time never goes back. What a hub merely says proves
// nothing: one that lies could otherwise end everybody's certificates by a time far ahead. All that it can do is to
// keep newer certificates to itself, and the time of the one that has no clock stays behind by as much: what ended
// since then counts there for a little longer, unless a denylist refuses it. A clock that is ahead is believed, as
// everywhere, until the cloud is heard.
//
// The holder of a pool's key proves any time up to the end of its authority. A machine that does not hear the cloud has
// to believe that: one that lost its clock does not know for how long it was off. What the cloud says ends it: nothing
// counts that is ahead of the cloud's clock by more than an hour. A coordinator has no way to the cloud: the hub of its
// machine hands on what it hears (HandOn, Overhear).
type Proven struct {
	clock  clock.PassiveClock
	file   string
	logger *slog.Logger

	mu     sync.Mutex
	heard  bool      // the cloud, by this process
	signed time.Time // the latest that was proved; zero: none yet
	// what it was when the time was set last, and at that, by the local clock: it goes on from there; zero: it was not.
	from time.Time
	at   time.Time
	kept time.Time // what is on the disk
	over bool      // nothing is written any more

	handOn string    // a file for another process; "": none
	handed time.Time // what is in it
}

// CloudTimeFile is the name of the file in which a hub hands on the cloud's time, beside the certificates of the
// coordinator of its machine.
const CloudTimeFile = "cloud-time"

// keepEvery is how much of the cloud's time may be lost in a power cut.
const keepEvery = 10 * time.Minute

// overheard is for how long what another process of this machine has heard is valid.
const overheard = 2 * keepEvery

const maxTime = 100 // bytes of a time on the disk

// OpenProven reads what was proved to a process before from a file; "" keeps nothing. What cannot be read counts as
// nothing.
func OpenProven(file string, c clock.PassiveClock, logger *slog.Logger) *Proven {
	p := &Proven{clock: c, file: file, logger: logger}
	if file == "" {
		return p
	}
	text, err := disk.ReadFile(file, maxTime)
	if errors.Is(err, fs.ErrNotExist) {
		return p
	}
	said, err := parseTime(text, err)
	if err != nil {
		logger.Warn("the time on the disk does not count: certificates are judged by this machine's clock until one "+
			"proves a time", "file", file, "err", err)
		return p
	}
	p.kept, p.from, p.at = said, said, c.Now()
	return p
}

func parseTime(text []byte, err error) (time.Time, error) {
	if err != nil {
		return time.Time{}, err
	}
	return time.Parse(time.RFC3339, strings.TrimSpace(string(text)))
}

// HandOn has the cloud's time written to a file, too, for a process of this machine that does not hear the cloud. It is
// called before the cloud is heard.
func (p *Proven) HandOn(file string) { p.handOn = file }

// Overhear takes the time that another process of this machine has heard from the cloud and handed on in a file, as if
// the cloud had been heard. A file that is older than overheard, or not there, says nothing. Who may write the file has
// the keys beside it.
func (p *Proven) Overhear(file string) {
	about, err := os.Stat(file)
	if err != nil {
		return
	}
	said, err := parseTime(disk.ReadFile(file, maxTime))
	age := p.clock.Since(about.ModTime())
	if err != nil || age < 0 || age > overheard {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hear(said.Add(age).Truncate(time.Second))
}

// Close ends the writing of files: a handshake goes on for a moment after whoever began it has ended.
func (p *Proven) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over = true
}

// Now is the time by which to judge.
func (p *Proven) Now() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.now()
}

// astray is by how much a clock may be behind what was proved, and be a clock all the same, and how far ahead of the
// cloud's clock a certificate may begin.
const astray = time.Hour

// Known is Now, and whether that is known: the cloud was heard, or this machine has a clock. If it has none, as what
// starts in 1970, Now is the least that the time may be.
func (p *Proven) Known() (now time.Time, known bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	own, now := p.clock.Now().Round(0), p.now()
	return now, p.heard || now.Sub(own) < astray
}

func (p *Proven) now() time.Time {
	now, told := p.clock.Now().Round(0), p.told()
	if p.heard || told.After(now) {
		now = told
	}
	if p.signed.After(now) {
		return p.signed
	}
	return now
}

// told is the latest time that somebody told, and the time since.
func (p *Proven) told() time.Time {
	if p.from.IsZero() {
		return time.Time{}
	}
	return p.from.Add(p.clock.Since(p.at)).Round(0)
}

// Hear takes the Date of an answer of the cloud, which has proved who it is. What is no date changes nothing.
func (p *Proven) Hear(date string) {
	said, err := http.ParseTime(date)
	if err != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hear(said)
	if p.over || p.handOn == "" || said.Sub(p.handed).Abs() < keepEvery {
		return
	}
	p.handed = said
	if err := disk.WriteFile(p.handOn, []byte(said.UTC().Format(time.RFC3339)+"\n")); err != nil {
		p.logger.Warn("the cloud's time cannot be handed on to the coordinator of this machine", "file", p.handOn, "err", err)
	}
}

func (p *Proven) hear(said time.Time) {
	p.heard, p.from, p.at = true, said, p.clock.Now()
	if p.signed.Sub(said) > astray {
		p.logger.Warn("the cloud's clock is far behind what a certificate of the pool says: the cloud's counts; was the "+
			"pool's key stolen?", "cloud", said.UTC(), "certificate", p.signed.UTC())
		p.signed = time.Time{}
	}
	if said.Sub(p.kept).Abs() >= keepEvery {
		p.keep(said)
	}
}

// Learn takes the time that a chain proves, leaf first, if one of the authorities vouches for it.
func (p *Proven) Learn(chain []*x509.Certificate, authorities *x509.CertPool) {
	if len(chain) == 0 {
		return
	}
	begin := chain[0].NotBefore
	if !p.later(begin) {
		return
	}
	if _, err := chain[0].Verify(options(chain, authorities, begin)); err != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !begin.After(p.signed) || p.heard && begin.Sub(p.told()) > astray {
		return
	}
	if now := p.now(); begin.After(now) {
		p.logger.Warn("this machine's clock is behind: a certificate began later than it shows; certificates are judged by "+
			"that time from now on", "clock", now.UTC(), "time", begin.UTC())
	}
	if begin.After(p.told()) && !p.heard {
		p.from, p.at = begin, p.clock.Now()
	}
	if p.signed = begin; begin.After(p.kept) {
		p.keep(begin)
	}
}

// Verify is x509's, by this time, which the chain itself may prove.
func (p *Proven) Verify(chain []*x509.Certificate, opts x509.VerifyOptions) error {
	p.Learn(chain, opts.Roots)
	opts.CurrentTime = p.Now()
	return verify(chain, opts)
}

// keep writes a time to the disk.
func (p *Proven) keep(t time.Time) {
	p.kept = t
	if p.over || p.file == "" {
		return
	}
	if err := disk.WriteFile(p.file, []byte(t.UTC().Format(time.RFC3339)+"\n")); err != nil {
		p.logger.Error("the time that was proved counts, but cannot be kept: it is lost with this process", "file", p.file,
			"err", err)
	}
}

// later reports whether a time is after all that was proved.
func (p *Proven) later(t time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return t.After(p.signed)
}

// options verify a chain at a time, whatever it is used for.
func options(chain []*x509.Certificate, authorities *x509.CertPool, at time.Time) x509.VerifyOptions {
	return x509.VerifyOptions{
		Roots: authorities, Intermediates: intermediates(chain), CurrentTime: at,
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny},
	}
}

func intermediates(chain []*x509.Certificate) *x509.CertPool {
	all := x509.NewCertPool()
	for _, c := range chain[1:] {
		all.AddCert(c)
	}
	return all
}

// verify is x509's, of a chain as TLS shows it, leaf first.
func verify(chain []*x509.Certificate, opts x509.VerifyOptions) error {
	opts.Intermediates = intermediates(chain)
	_, err := chain[0].Verify(opts)
	return err
}

package virtual

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/weir-edge/weir/impl/member"
	"github.com/weir-edge/weir/impl/role"
)

// Do executes one command; doc.go lists them.
func (p *Pool) Do(command string) error {
	p.trace("*", "%s", command)
	words := append(strings.Fields(command), "", "", "", "")
	do := map[string]func([]string) error{
		"write": p.doWrite, "delete": p.doWrite, "recreate": p.doWrite,
		"cloud": p.doCloud, "coordinator": p.doCoordinator, "hub": p.doHub, "link": p.doLink, "client": p.doClient,
		"blackout": p.doBlackout, "heal": p.doHeal, "unread": p.doUnread,
	}[words[0]]
	if do == nil {
		return fmt.Errorf("unknown command %q", command)
	}
	if err := do(words); err != nil {
		return fmt.Errorf("%q: %w", command, err)
	}
	return nil
}

func (p *Pool) doWrite(w []string) error {
	p.cloud.advance(len(w[1]) % 3) // others write as well
	switch w[0] {
	case "write":
		p.change(p.cloud.write(w[1]))
	case "delete":
		p.change(p.cloud.remove(w[1]))
	case "recreate":
		p.change(p.cloud.remove(w[1]))
		p.change(p.cloud.write(w[1]))
	}
	return nil
}

func (p *Pool) doCloud(w []string) error {
	switch w[1] {
	case "restart":
		p.breakCloud()
		p.cloud.restart()
	case "kill":
		p.breakCloud()
		p.cloud.kill()
	case "start":
		if !p.cloud.up {
			p.cloud.restart()
		}
	case "forget":
		p.cloud.forget()
	case "restore":
		n, err := strconv.ParseUint(w[2], 10, 64)
		if err != nil {
			return err
		}
		p.breakCloud()
		p.cloud.restore(n)
	default:
		return fmt.Errorf("what of the cloud?")
	}
	return nil
}

// believed is the history that a relay, or a disk, believes in, and which one of the cloud's that is.
type believed struct {
	number uint64
	era    int
}

// beliefs are those of all relays that run, and all disks, but for one hub's; all is false if one of them holds
// nothing.
func (p *Pool) beliefs(but *Hub) (list []believed, all bool) {
	all = true
	look := func(up bool, s *server, d *saved) {
		st := s.Status()
		if up && st.Synced {
			list = append(list, believed{st.History.Number, s.era})
		}
		if d.x != nil {
			list = append(list, believed{d.x.History.Number, d.era})
		}
		all = all && up && st.Synced && d.x != nil
	}
	if p.cfg.Leaders > 0 {
		return nil, false // without a coordinator nobody counts for all
	}
	look(p.coord.up, p.coord.server, &p.coord.saved)
	for _, h := range p.hubs {
		if h != but {
			look(h.up, h.server, &h.saved)
		}
	}
	return list, all
}

// agreed reports whether everybody, and every disk, is in the present history of the cloud, under one number, and no
// disk is empty: who is killed before it has saved anything is as one that is wiped, see uncounted. Weir does not
// promise to tell histories apart of which one came and went while a part was away: they are counted, and two parts may
// have counted to the same number.
func (p *Pool) agreed() bool {
	list, all := p.beliefs(nil)
	for _, b := range list {
		if b != (believed{list[0].number, p.cloud.era}) {
			return false
		}
	}
	return all
}

// uncounted reports whether anybody but a hub is in an earlier history than the cloud, or has it on disk. The hub
// without a disk that listed from the cloud would believe to be in that one as well, because it takes the number of
// others: nor does Weir promise to tell these apart.
func (p *Pool) uncounted(but *Hub) bool {
	list, _ := p.beliefs(but)
	for _, b := range list {
		if b.era < p.cloud.era {
			return true
		}
	}
	return false
}

func (p *Pool) doCoordinator(w []string) error {
	c := p.coord
	if p.cfg.Leaders > 0 {
		return nil // there is none
	}
	switch w[1] {
	case "kill":
		if c.up {
			p.killCoordinator()
		}
	case "start", "start-empty":
		if !c.up {
			c.boot(w[1] == "start")
		}
	case "freeze":
		c.frozen = c.up
	case "thaw":
		c.thaw()
	default:
		return fmt.Errorf("what of the coordinator?")
	}
	return nil
}

func (p *Pool) hub(name string) (*Hub, error) {
	for _, h := range p.hubs {
		if h.name == name {
			return h, nil
		}
	}
	return nil, fmt.Errorf("no hub %q", name)
}

func (p *Pool) doHub(w []string) error {
	h, err := p.hub(w[1])
	if err != nil {
		return err
	}
	switch w[2] {
	case "kill":
		if h.up {
			p.kill(h)
		}
	case "start", "start-empty":
		if !h.up {
			h.boot(w[2] == "start" || p.uncounted(h))
		}
	case "stop":
		if h.up && !h.frozen {
			h.stop = true
			h.after(lastWords, func() { p.kill(h) })
			h.step(member.Observation{})
		}
	case "freeze":
		h.frozen = h.up
	case "thaw":
		h.thaw()
	case "doubt":
		if h.up {
			h.doubt()
		}
	case "trust":
		h.against = ""
		h.step(member.Observation{})
	case "bar", "busy", "admit":
		says := map[string]error{"bar": errForbidden, "busy": errBusy}[w[2]]
		same := fmt.Sprint(says) == fmt.Sprint(h.answer)
		h.answer = says
		if !same && h.up && h.feeder.source() == role.Cloud {
			h.feeder.kick() // its watch ends with the right to it; another certificate is tried at once
		}
	case "clock":
		h.skew, err = time.ParseDuration(w[3])
		return err
	default:
		return fmt.Errorf("what of the hub?")
	}
	return nil
}

func (p *Pool) doLink(w []string) error {
	h, err := p.hub(w[1])
	if err != nil {
		return err
	}
	s, known := map[string]state{"open": open, "stall": stalled, "lose": lossy}[w[3]]
	links := []*link{h.toCloud}
	if w[2] == "coordinator" {
		links = append([]*link{h.toCoordinator, h.fromCoordinator}, p.between(h)...)
	}
	for _, l := range links {
		there, back := up, down // as the hub sees it
		if l.client != &h.process {
			there, back = down, up
		}
		switch {
		case w[3] == "slow" || w[3] == "fast":
			l.slow = w[3] == "slow"
		case w[3] == "reset":
			l.reset(true)
		case w[3] == "drop":
			l.reset(false)
		case !known:
			return fmt.Errorf("what of the link?")
		case w[4] == "up":
			l.set(there, s)
		case w[4] == "down":
			l.set(back, s)
		default:
			l.set(up, s)
			l.set(down, s)
		}
	}
	return nil
}

func (p *Pool) doClient(w []string) error {
	for _, c := range p.clients {
		if c.name != w[1] {
			continue
		}
		switch w[2] {
		case "cut":
			n, err := strconv.Atoi(w[3])
			c.fuse = n
			return err
		case "cloud":
			c.server(nil)
			return nil
		}
		h, err := p.hub(w[2])
		if err == nil {
			c.server(h)
		}
		return err
	}
	return fmt.Errorf("no client %q", w[1])
}

// doBlackout cuts the cloud off, and ends everything in the pool at once.
func (p *Pool) doBlackout([]string) error {
	commands := []string{"coordinator kill"}
	for _, h := range p.hubs {
		commands = append(commands, "link "+h.name+" cloud lose", "hub "+h.name+" kill")
	}
	for _, c := range commands {
		if err := p.Do(c); err != nil {
			return err
		}
	}
	return nil
}

// doUnread has all clients of a hub, or of all, go on at the cloud until all is healed. What nobody reads then is given
// up: hubs first, then the coordinator, and at last the hub that it read.
func (p *Pool) doUnread(w []string) error {
	for _, c := range p.clients {
		if h := c.hub; h != nil && (w[1] == "" || h.name == w[1]) {
			c.back = h
			c.server(nil)
		}
	}
	for range p.hubs {
		for _, h := range p.hubs {
			if !p.uncounted(h) { // else it is as one without a disk
				h.rest()
			}
		}
		if p.cfg.Leaders == 0 && !p.uncounted(nil) {
			p.coord.rest()
		}
	}
	return nil
}

// doHeal ends all faults.
func (p *Pool) doHeal([]string) error {
	commands := []string{"cloud start", "coordinator thaw", "coordinator start"}
	for _, h := range p.hubs {
		commands = append(commands,
			"link "+h.name+" cloud open", "link "+h.name+" coordinator open", "link "+h.name+" cloud fast",
			"link "+h.name+" coordinator fast",
			"hub "+h.name+" thaw", "hub "+h.name+" start", "hub "+h.name+" trust",
			"hub "+h.name+" admit")
	}
	for _, c := range commands {
		if err := p.Do(c); err != nil {
			return err
		}
	}
	for _, c := range p.clients {
		if c.back != nil {
			c.server(c.back)
			c.back = nil
		}
	}
	return nil
}

// Chance draws a random command. A run draws its own chance from elsewhere, so that the same commands make the same
// run.
func (p *Pool) Chance(rng *rand.Rand) string {
	one := func(s ...string) string { return s[rng.IntN(len(s))] }
	hub := p.hubs[rng.IntN(len(p.hubs))].name
	obj := key(rng.IntN(8))
	switch rng.IntN(21) {
	case 20:
		return one("blackout", "coordinator start", "hub "+hub+" start", "unread", "unread "+hub)
	case 0, 1, 2, 3:
		return "write " + obj
	case 4, 5:
		return "delete " + obj
	case 6:
		return "recreate " + obj
	case 7:
		restore := fmt.Sprintf("restore %d", rng.IntN(20))
		if !p.cloud.up || !p.agreed() {
			restore = "forget"
		}
		return "cloud " + one("restart", "forget", "forget", "kill", "start", "start", restore)
	case 8, 9:
		return "coordinator " + one("kill", "start", "start", "start-empty", "freeze", "thaw", "thaw")
	case 10, 11, 12:
		return "hub " + hub + " " + one("kill", "start", "start", "start-empty", "stop", "freeze", "thaw", "thaw", "doubt",
			"trust", "bar", "busy", "admit")
	case 13, 14, 15:
		return "link " + hub + " " + one("cloud", "coordinator") + " " +
			one("open", "open", "open", "stall", "stall up", "stall down", "lose", "lose up", "lose down", "reset", "drop")
	case 16:
		return "link " + hub + " " + one("cloud", "coordinator") + " " + one("slow", "fast")
	case 17:
		return fmt.Sprintf("hub %s clock %v", hub, time.Duration(rng.Int64N(int64(2*time.Hour)))-time.Hour)
	default:
		c := p.clients[rng.IntN(len(p.clients))].name
		return "client " + c + " " + one(hub, "cloud", "cut 1", "cut 2", "cut 3")
	}
}

package heartbeat

import "time"

// beat is one turn of the kubelet: it renews, up to five times, and comes again.
func (n *simNode) beat() {
	again := func() { n.after(n.span(Interval, Slowest), n.beat) }
	if !n.alive {
		again()
		return
	}
	n.try(1, again)
}

// judged is what probes say of the cloud: they may be behind.
func (n *simNode) judged() bool {
	if n.quick {
		cutOff, _ := n.node.CutOff()
		return !n.cut || !cutOff
	}
	return n.cut == (n.rng.IntN(4) == 0)
}

func (n *simNode) try(attempt int, again func()) {
	if attempt > 5 || !n.alive {
		again()
		return
	}
	renew := n.clock()
	plan := n.node.Beat(n.Now(), n.judged())
	n.note("%s %v", n.name, plan)
	switch plan {
	case Keep:
		n.node.Passed(n.Now(), false)
		n.state(renew)
		again()
	case Return:
		n.withdraw(func() { n.pass(attempt, renew, again) })
	case Pass:
		n.pass(attempt, renew, again)
	}
}

// withdraw withdraws that the node is cut off.
func (n *simNode) withdraw(then func()) {
	done := false
	end := func(ok bool) {
		if !done {
			done = true
			n.unsure = !ok
			then()
		}
	}
	n.after(Withdraw, func() { end(false) })
	n.statement = nil
	var write func()
	write = func() {
		if done {
			return
		}
		if n.writing {
			n.after(10*time.Millisecond, write)
			return
		}
		n.put(func(l *Lease) bool { // only what is said of the cloud changes
			l.Delegated = false
			return true
		}, func(o Outcome) {
			switch o {
			case OK:
				end(true)
			default:
				n.after(50*time.Millisecond, write)
			}
		})
	}
	write()
}

func (n *simNode) pass(attempt int, renew time.Time, again func()) {
	sent, base, unsure := n.serial, n.base, n.unsure
	l := Lease{Renew: Later(renew, n.known)}
	n.ask(true, Attempt, n.toCloud, func() any {
		s := n.cloud[n.name]
		written := s.put(n.world, l, base)
		if written == nil {
			return Conflict
		}
		s.own, s.unsure = sent, unsure
		return *written
	}, func(answer any) {
		n.node.Passed(n.Now(), answer != nil)
		n.state(renew)
		switch a := answer.(type) {
		case Lease:
			n.base, n.known = a.Version, a.Renew
		case Outcome:
			n.ask(true, Interval, n.toCloud, func() any { return n.cloud[n.name].lease }, func(answer any) {
				if a, ok := answer.(Lease); ok {
					n.base, n.known = a.Version, a.Renew
				}
				n.try(attempt+1, again)
			})
			return
		}
		again()
	})
}

// state mirrors the heartbeat.
func (n *simNode) state(renew time.Time) {
	if s := n.node.Statement(renew); s.Needed {
		n.statement = &s
		n.write()
	}
}

func (n *simNode) write() {
	if n.statement == nil || n.writing {
		return
	}
	s := *n.statement
	if n.Now() > s.Until {
		n.statement = nil
		return
	}
	if s.Delegated {
		n.said = n.serial + 1 // the statement is sent after all that was sent before
		n.serial++
	}
	n.put(func(l *Lease) bool {
		l.Renew, l.Delegated = s.Renew, s.Delegated
		return true
	}, func(o Outcome) {
		if o == OK {
			n.node.Written(s)
		}
		if o == OK && !s.Delegated {
			n.unsure = false
		}
		if o == OK && n.statement != nil && *n.statement == s {
			n.statement = nil
		}
		if n.statement != nil {
			n.after(100*time.Millisecond, n.write)
		}
	})
}

// put writes the Lease in the coordinator on condition of the version known; a conflict reads it.
func (n *simNode) put(change func(*Lease) bool, then func(Outcome)) {
	n.writing = true
	version := n.mirrored
	end := func(o Outcome) {
		n.writing = false
		then(o)
	}
	current := n.pool[n.name]
	var l Lease
	if current != nil {
		l = current.lease
	}
	change(&l)
	n.ask(false, 2*time.Second, n.toPool, func() any {
		s := n.pool[n.name]
		if s == nil {
			if version != "" {
				return Absent
			}
			s = &stored{}
			n.pool[n.name] = s
		}
		written := s.put(n.world, l, version)
		if written == nil {
			return s.lease.Version
		}
		n.tell(n.name)
		return *written
	}, func(answer any) {
		switch a := answer.(type) {
		case Lease:
			n.mirrored = a.Version
			end(OK)
		case string:
			n.mirrored = a
			end(Conflict)
		case Outcome:
			n.mirrored = ""
			end(Absent)
		default:
			end(Failed)
		}
	})
}

// tell sends a change to all watchers, in order.
func (w *world) tell(name string) {
	l := w.pool[name].lease
	for _, n := range w.nodes {
		if n.watching && n.toPool() {
			n.after(n.lag, func() {
				if n.watching {
					n.see(name, l)
				}
			})
		} else {
			n.watching = false
		}
	}
}

func (n *simNode) see(name string, l Lease) {
	if l.Delegated {
		n.fwd.See(n.Now(), name, l, true)
	} else {
		n.fwd.Gone(n.Now(), name)
	}
	n.forward()
}

// watch looks at all Leases and then sees changes, again and again.
func (n *simNode) watch() {
	if !n.watching && n.toPool() {
		n.watching = true
		var names []string
		for _, o := range n.nodes {
			if s := n.pool[o.name]; s != nil && s.lease.Delegated {
				names = append(names, o.name)
				n.fwd.See(n.Now(), o.name, s.lease, false)
			}
		}
		n.fwd.Listed(n.Now(), names)
		n.forward()
	}
	n.after(time.Second, n.watch)
}

// forward does what a leader's Forwarder says.
func (n *simNode) forward() {
	actions, wake := n.fwd.Next(n.Now())
	if wake = max(wake, n.Now()+time.Millisecond); n.armed == 0 || wake < n.armed {
		n.armed = wake
		n.after(wake-n.Now(), func() {
			if n.armed == wake {
				n.armed = 0
				n.forward()
			}
		})
	}
	n.perform(actions)
}

func (n *simNode) perform(actions []Action) {
	for _, a := range actions {
		n.note("%s %v %s %t", n.name, a.Kind, a.Node, a.Annotate)
		if of := n.named(a.Node); n.quick && a.Kind == Write && !of.alive && n.Now() > of.died+Interval+2*time.Second+Life {
			n.fault("%s is forwarded %v after its kubelet died", a.Node, n.Now()-of.died)
		}
		switch a.Kind {
		case ReadPool:
			n.ask(false, 2*time.Second, n.toPool, func() any {
				if s := n.pool[a.Node]; s != nil {
					return s.lease
				}
				return Absent
			}, n.done(a))
		case ReadCloud:
			n.ask(true, Attempt, n.toCloud, func() any { return n.cloud[a.Node].lease }, n.done(a))
		case Write:
			n.ask(true, Attempt, n.toCloud, func() any { return n.annotate(a) }, n.done(a))
		}
	}
}

func (n *simNode) done(a Action) func(any) {
	return func(answer any) {
		r := Result{Kind: a.Kind, Node: a.Node, Outcome: Failed}
		switch x := answer.(type) {
		case Lease:
			r.Outcome, r.Lease = OK, x
		case Outcome:
			r.Outcome = x
		}
		n.fwd.Done(n.Now(), r)
		n.forward()
	}
}

// annotate is a forward that arrives in the cloud. It looks whether the node has returned.
func (n *simNode) annotate(a Action) any {
	s := n.cloud[a.Node]
	was := s.lease
	written := s.put(n.world, a.Lease, a.Lease.Version)
	if written == nil {
		return Conflict
	}
	if !written.Renew.After(was.Renew) {
		n.fault("%s was forwarded without growing", a.Node)
	}
	if !was.Delegated && !a.Annotate {
		n.fault("%s was forwarded without the annotation", a.Node)
	}
	if !was.Delegated && s.own > n.named(a.Node).said && !s.unsure {
		n.fault("%s had returned and was annotated", a.Node)
	}
	if !was.Delegated {
		n.delegations++
	}
	return *written
}

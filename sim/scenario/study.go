package scenario

import (
	"slices"
	"strings"
)

// Study is what a scenario is about: clients that list and watch, or what its one field of this kind names. It says
// what the file has beside, which faults may happen and what is measured. Which study it is, is decided by the parser
// alone.
type Study interface {
	// Name is its field in a file, "" without one.
	Name() string
	// read reads what only such scenarios have, and refuses what they have no use for.
	read(o object, s *Scenario)
	// rules are the faults that may happen.
	rules() []allowed
	// metrics are measured in such scenarios, and nothing else is; nil: most others are.
	metrics() []string
	// wanted tells why a scenario that is about something else never has one of the metrics; "": it may.
	wanted(metric string, s *Scenario) string
	// unmeasured tells why a scenario that is about this never has a metric; "": it may.
	unmeasured(metric string, s *Scenario) string
	// proof is a metric that each such scenario expects something of, and why; "": there is none.
	proof() (metric, why string)
	// compared reports whether stock Kubernetes is put through the same, which has an uplink and no other link.
	compared() bool

	// Hollow reports whether it needs nodes without machines, and tells what there is instead where there are none.
	Hollow() (hollow bool, instead string)
}

// Watching is the study of clients that list and watch.
type Watching struct{ ordinary }

// studies are all others. A metric of two of them is wanted by the later one.
func studies() []Study { return []Study{&Images{}, &Crowd{}, &Autonomy{}, &Eviction{}} }

// study reads what the scenario is about.
func (o object) study(s *Scenario) {
	rivals := map[string]string{
		"images": "crowd, eviction or autonomy", "crowd": "eviction or autonomy", "autonomy": "eviction",
	}
	all := slices.DeleteFunc(studies(), func(k Study) bool { return !o.has(k.Name()) })
	switch s.Study = (Watching{}); len(all) {
	case 0:
		s.Study.read(o, s)
	case 1:
		s.Study = all[0]
		s.Study.read(o, s)
	default:
		o.fields[all[0].Name()].contradiction("the scenario has " + rivals[all[0].Name()] + ": want one of them")
	}
}

// unmeasuredBy tells why a scenario never has a metric, by what it is about and by what others are.
func (s *Scenario) unmeasuredBy(metric string) string {
	all := studies()
	for i, k := range all {
		if k.Name() == s.Study.Name() {
			break
		}
		later := slices.ContainsFunc(all[i+1:], func(l Study) bool { return slices.Contains(l.metrics(), metric) })
		if why := k.wanted(metric, s); why != "" && !later && slices.Contains(k.metrics(), metric) {
			return why
		}
	}
	if own := s.Study.metrics(); own != nil && !slices.Contains(own, metric) {
		return metric + " is not measured in a scenario with " + s.Study.Name() + "; want one of " + strings.Join(own, ", ")
	}
	return s.Study.unmeasured(metric, s)
}

// ordinary is what most studies have in common.
type ordinary struct{}

// Name implements Study.
func (ordinary) Name() string                        { return "" }
func (ordinary) metrics() []string                   { return nil }
func (ordinary) wanted(string, *Scenario) string     { return "" }
func (ordinary) unmeasured(string, *Scenario) string { return "" }
func (ordinary) proof() (metric, why string)         { return "", "" }
func (ordinary) compared() bool                      { return false }
func (ordinary) rules() []allowed                    { return may(kinds()...) }

// Hollow implements Study.
func (ordinary) Hollow() (bool, string) { return false, "" }

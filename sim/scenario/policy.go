package scenario

import (
	"context"
	"strings"
	"time"
)

// Policies is a laboratory with a policy for silent pools.
type Policies interface {
	SetPolicy(ctx context.Context, p Policy) error
}

// SetPolicy gives the pool another policy for the time when all of it is silent, from then on.
type SetPolicy struct {
	ofWeir

	Policy Policy
}

func (*SetPolicy) rule() actionRule { return takes("policy", []Target{WholePool}, "policy") }

func (k *SetPolicy) own() []own {
	return []own{{"policy", &k.Policy, func(v value, _ Pool) { k.Policy = v.policy() }}}
}

func (k *SetPolicy) words() string { return ": " + k.Policy.String() }

// Begin implements Kind.
func (k *SetPolicy) Begin(ctx context.Context, lab Lab, _ *Aim) (Going, error) {
	return with(lab, func(of Policies) (Going, error) { return Going{}, of.SetPolicy(ctx, k.Policy) })
}

// Policy says what happens to the pods of a pool of which every node is silent.
type Policy struct {
	Evict bool
	After time.Duration // of silence; only with Evict
}

const (
	policyKeep  = "keep"
	policyEvict = "evict after "
	policyHelp  = `"keep", or as "evict after 2m"`
)

// String is the policy as it is written.
func (p Policy) String() string {
	if !p.Evict {
		return policyKeep
	}
	return policyEvict + p.After.String()
}

// MarshalYAML implements yaml.Marshaler.
func (p Policy) MarshalYAML() (any, error) { return p.String(), nil }

func (v value) policy() (p Policy) {
	s, ok := v.str(policyHelp)
	if !ok || s == policyKeep {
		return p
	}
	after, ok := strings.CutPrefix(s, policyEvict)
	d, err := time.ParseDuration(after)
	if !ok || err != nil || d < 0 || d > maxAfter {
		v.wrong(policyHelp)
		return p
	}
	return Policy{Evict: true, After: d}
}
